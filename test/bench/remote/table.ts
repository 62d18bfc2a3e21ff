import { type Figure, isRate, type Row, type Work } from './work.ts';

/** The results of one work. */
export interface Result {
  readonly work: Work;
  /** The rivals' results, davgate's first. */
  readonly rivals: { readonly name: string; readonly rounds: Figure[][]; peakMb: number }[];
  /** Rates of the service itself, by round and row. */
  readonly bare: (number | undefined)[][];
}

const MEMORY_WANTED_MB = 110;

/** Returns the results as a Markdown table. */
export function table(results: readonly Result[]): string {
  const lines = results.flatMap((result) => result.work.rows.map((row, index) => line(result, row, index)));
  const heads = ['work', 'davgate (calls)', 'rclone, best mode (calls)', 'ratio', 'wanted', ''];
  return [heads, heads.map(() => '---'), ...lines, memoryLine(results)]
    .map((cells) => `| ${cells.join(' | ')} |`)
    .join('\n');
}

function line({ rivals, bare }: Result, row: Row, index: number): string[] {
  const [own, ...others] = rivals.map(({ name, rounds }) => ({ name, figure: middle(rounds, index) }));
  const best = others.sort((a, b) => better(row, b.figure) - better(row, a.figure))[0];
  if (!own || !best) throw new Error(`${row.title}: nothing was measured`);
  const bareFigure = median(bare.map((round) => round[index] ?? Number.NaN));
  const bareText = Number.isNaN(bareFigure) ? '' : ` (the service alone: ${amount(bareFigure, row)})`;
  const ratio = isRate(row.unit)
    ? own.figure.value / best.figure.value
    : best.figure.value / own.figure.value;
  const isMet = row.met(own.figure, best.figure, Number.isNaN(bareFigure) ? undefined : bareFigure);
  return [
    row.title,
    cell(own.figure, row),
    `${cell(best.figure, row)}, ${best.name.replace('rclone, ', '')}`,
    row.unit === 'calls' ? '' : ratio.toFixed(ratio < 10 ? 2 : 0),
    row.wanted + bareText,
    isMet ? 'met' : 'missed',
  ];
}

/** Returns the median of the rounds. */
function middle(rounds: readonly Figure[][], index: number): Figure {
  const figures = rounds.map((round) => round[index]).filter((figure) => figure !== undefined);
  const sorted = figures.sort((a, b) => a.value - b.value);
  return sorted[sorted.length >> 1] ?? { value: Number.NaN, calls: Number.NaN };
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}

function better(row: Row, { value }: Figure): number {
  return isRate(row.unit) ? value : -value;
}

function cell(figure: Figure, row: Row): string {
  if (row.unit === 'calls') return String(figure.calls);
  const notes = [`${figure.calls} calls`, figure.note].filter((note) => note !== undefined);
  return `${amount(figure.value, row)} (${notes.join('; ')})`;
}

function amount(value: number, { unit }: Row): string {
  const digits = value < 1 ? 2 : value < 100 ? 1 : 0;
  return `${value.toFixed(digits)}${unit.startsWith('/') ? unit : ` ${unit}`}`;
}

function memoryLine(results: readonly Result[]): string[] {
  const peaks = (isOwn: boolean) =>
    results.flatMap(({ rivals }) =>
      rivals.filter((_, index) => (index === 0) === isOwn).map(({ peakMb }) => peakMb),
    );
  const own = Math.max(...peaks(true));
  const others = peaks(false);
  const least = Math.min(...others);
  return [
    'peak memory in all of it',
    `${own.toFixed(0)} MB`,
    `${least.toFixed(0)} to ${Math.max(...others).toFixed(0)} MB`,
    '',
    `under ${MEMORY_WANTED_MB} MB`,
    own < MEMORY_WANTED_MB ? 'met' : 'missed',
  ];
}
