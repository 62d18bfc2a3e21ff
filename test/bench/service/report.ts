import { cpus } from 'node:os';
import type { Kind } from './options.ts';
import type { Measured } from './setup.ts';
import type { Figure } from './works.ts';

/** A figure of all rounds, by the kind of the service. */
export interface Row {
  readonly figure: Figure;
  readonly measured: ReadonlyMap<Kind, readonly Measured[]>;
}

/** Share of all processors from which on they are what bounds a figure. */
const BUSY_SHARE = 0.85;

/** Returns the table of all figures, in Markdown. */
export function tableOf(rows: readonly Row[]): string {
  return [
    '| work | SQLite | PostgreSQL | ratio | wanted |',
    '| --- | --- | --- | --- | --- |',
    ...rows.map(({ figure, measured }) => {
      const [sqlite, postgres] = [medianOf(measured.get('sqlite')), medianOf(measured.get('postgres'))];
      const ratio = sqlite && postgres && ratioOf(figure, sqlite, postgres);
      const words = [figure.label, shown(figure, sqlite), shown(figure, postgres)];
      return `| ${[...words, ratio?.toFixed(2) ?? '–', wanted(figure, ratio)].join(' | ')} |`;
    }),
  ].join('\n');
}

/** Returns what each figure but a size cost, and what bounds it, in Markdown. */
export function boundsOf(rows: readonly Row[]): string {
  const timed = rows.filter(({ figure }) => figure.unit !== 'B');
  return [
    '| work | metadata | client, service, PostgreSQL: a core each is 100 % | commits to PostgreSQL | bounded by |',
    '| --- | --- | --- | --- | --- |',
    ...timed.flatMap(({ figure, measured }) =>
      [...measured].flatMap(([kind, all]) => {
        const one = medianOf(all);
        if (!one) return [];
        const ms = one.seconds * 1000;
        const shares = [one.clientMs, one.serviceMs, one.postgresMs].map((used) => used / ms);
        const percent = shares.map((share) => `${Math.round(share * 100)} %`).join(', ');
        const isBusy = shares.reduce((sum, share) => sum + share, 0) >= BUSY_SHARE * cpus().length;
        const busiest = Math.max(...shares) >= BUSY_SHARE ? 'one core' : 'waiting: flushes and round trips';
        const commits = kind === 'postgres' ? String(one.commits) : '–';
        return [`| ${[figure.label, kind, percent, commits, isBusy ? 'all cores' : busiest].join(' | ')} |`];
      }),
    ),
  ].join('\n');
}

/** Returns the median; of two in the middle, the slower one. */
function medianOf(all: readonly Measured[] | undefined): Measured | undefined {
  const sorted = [...(all ?? [])].sort(
    (one, other) => one.seconds / one.amount - other.seconds / other.amount,
  );
  return sorted[sorted.length >> 1];
}

function ratioOf(figure: Figure, sqlite: Measured, postgres: Measured): number {
  return valueIn(figure, postgres) / valueIn(figure, sqlite);
}

function valueIn({ unit }: Figure, { amount, seconds }: Measured): number {
  if (unit === 'B') return amount;
  return unit === 'ms' ? (seconds * 1000) / amount : amount / seconds / (unit === 'MB/s' ? 1e6 : 1);
}

function shown(figure: Figure, measured: Measured | undefined): string {
  if (!measured) return '–';
  return `${Math.round(valueIn(figure, measured)).toLocaleString('en')} ${figure.unit}`;
}

function wanted({ goal }: Figure, ratio: number | undefined): string {
  if (goal === undefined) return '';
  if (ratio === undefined) return `≥ ${goal}`;
  return `≥ ${goal}: ${ratio >= goal ? 'met' : 'missed'}`;
}
