/** `npm run bench:service`: the storage service alone, on SQLite and on PostgreSQL, beside its disk. */
import { mkdtempSync, rmSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { ChoiceError } from './choice.ts';
import { type BenchOptions, benchOptions, type Kind } from './service/options.ts';
import { referenceLines } from './service/reference.ts';
import { boundsOf, type Row, tableOf } from './service/report.ts';
import { type Measured, type Setup, startSetup } from './service/setup.ts';
import { type Sizes, sizesAt, WORKS, type Work } from './service/works.ts';

/** Exit code for an invalid command line, as in davgate. */
const EXIT_UNUSABLE = 2;

function chosen(): BenchOptions {
  try {
    const names = WORKS.map(({ name }) => name);
    return benchOptions(process.argv.slice(2), names);
  } catch (error) {
    if (!(error instanceof ChoiceError)) throw error;
    console.error(`bench: ${error.message}`);
    process.exit(EXIT_UNUSABLE);
  }
}

/** Measures one work, with the kinds of service in turns. */
async function rowsOf(
  work: Work,
  setups: readonly Setup[],
  sizes: Sizes,
  rounds: number,
): Promise<readonly Row[]> {
  const figures = work.figures(sizes);
  const measured = figures.map(() => new Map<Kind, Measured[]>());
  for (let round = 0; round < rounds; round++)
    for (const setup of setups)
      for (const [index, one] of (await work.run(setup, sizes, round)).entries())
        if (one) measured[index]?.set(setup.kind, [...(measured[index].get(setup.kind) ?? []), one]);
  return figures.map((figure, index) => ({ figure, measured: measured[index] ?? new Map() }));
}

async function main({ kinds, works, rounds, scale }: BenchOptions): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), 'davgate-bench-service-'));
  const sizes = sizesAt(scale);
  const setups: Setup[] = [];
  try {
    console.log(
      `${cpus().length} cores of ${cpus()[0]?.model ?? 'an unknown kind'}, Node ${process.version}`,
    );
    for (const line of await referenceLines(home, sizes)) console.log(`- ${line}`);
    for (const kind of kinds) setups.push(await startSetup(kind, home));
    for (const setup of setups) {
      const ms = await setup.roundTripMs();
      if (ms !== undefined) console.log(`- a statement of PostgreSQL that does nothing: ${ms.toFixed(2)} ms`);
    }
    const rows: Row[] = [];
    for (const work of WORKS.filter(({ name }) => works.includes(name)))
      rows.push(...(await rowsOf(work, setups, sizes, rounds)));
    console.log(`\n${tableOf(rows)}\n\n${boundsOf(rows)}`);
  } finally {
    for (const setup of setups) await setup.close();
    rmSync(home, { recursive: true, force: true });
  }
}

await main(chosen());
process.exit(0);
