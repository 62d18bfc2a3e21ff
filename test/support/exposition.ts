/** A scrape in Prometheus' text format 0.0.4, with its values by `name{label="value",…}`. */
export interface Scrape {
  /**
   * Returns the value of a series, with labels in any order. A missing series is 0, as in Prometheus'
   * functions.
   */
  value(name: string, labels?: Readonly<Record<string, string>>): number;
  /** Returns the series of a name, each with sorted labels. */
  series(name: string): readonly string[];
  /** Types by name, from the `# TYPE` lines. */
  readonly types: ReadonlyMap<string, string>;
}

const NAME = '[a-zA-Z_:][a-zA-Z0-9_:]*';
const LABEL = '[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\\\\n]|\\\\[\\\\"n])*"';
const SAMPLE = new RegExp(
  `^(${NAME})(?:\\{(${LABEL}(?:,${LABEL})*)?\\})? (-?[0-9.]+(?:e[+-]?\\d+)?|[+-]Inf|[Nn]a[Nn])$`,
);

/**
 * Parses a scrape. Throws on any violation of the format, because Prometheus drops the whole scrape for one
 * wrong line.
 */
export function parseExposition(text: string): Scrape {
  if (!text.endsWith('\n')) throw new Error('the last line does not end');
  const types = new Map<string, string>();
  const values = new Map<string, number>();
  for (const line of text.slice(0, -1).split('\n')) {
    if (line === '' || line.startsWith('# HELP ')) continue;
    if (line.startsWith('# TYPE ')) declare(line, types);
    else if (line.startsWith('#')) throw new Error(`an unknown comment: ${line}`);
    else take(line, types, values);
  }
  for (const [name, type] of types) if (type === 'histogram') checkHistogram(name, values);
  return {
    types,
    value: (name, labels = {}) => values.get(keyOf(name, Object.entries(labels))) ?? 0,
    series: (name) => [...values.keys()].filter((key) => key === name || key.startsWith(`${name}{`)),
  };
}

function declare(line: string, types: Map<string, string>): void {
  const [, , name = '', type = '', ...rest] = line.split(' ');
  if (rest.length > 0 || !/^(counter|gauge|histogram|summary|untyped)$/.test(type))
    throw new Error(`no type: ${line}`);
  if (types.has(name)) throw new Error(`${name} is declared twice`);
  types.set(name, type);
}

function take(line: string, types: ReadonlyMap<string, string>, values: Map<string, number>): void {
  const [, name = '', labels = '', value = ''] = SAMPLE.exec(line) ?? [];
  if (name === '') throw new Error(`no sample: ${line}`);
  const family = types.has(name) ? name : name.replace(/_(bucket|sum|count)$/, '');
  const type = types.get(family);
  if (!type) throw new Error(`${name} is not declared`);
  if (type === 'counter' && !(Number(value) >= 0)) throw new Error(`a counter below 0: ${line}`);
  const pairs = [...labels.matchAll(new RegExp(LABEL, 'g'))].map(([label]): [string, string] => {
    const at = label.indexOf('=');
    return [label.slice(0, at), label.slice(at + 2, -1)];
  });
  const key = keyOf(name, pairs);
  if (values.has(key)) throw new Error(`${key} is there twice`);
  values.set(key, Number(value.replace('Inf', 'Infinity')));
}

function keyOf(name: string, labels: readonly (readonly [string, string])[]): string {
  const sorted = labels.map(([label, value]) => `${label}="${value}"`).sort();
  if (new Set(labels.map(([label]) => label)).size < labels.length) throw new Error(`${name}: a label twice`);
  return sorted.length > 0 ? `${name}{${sorted.join(',')}}` : name;
}

/** Expects buckets to grow and the last one, +Inf, to equal the count. */
function checkHistogram(name: string, values: ReadonlyMap<string, number>): void {
  const last = new Map<string, { bound: number; value: number }>();
  for (const [key, value] of values) {
    if (!key.startsWith(`${name}_bucket{`)) continue;
    const bound = Number(/le="([^"]+)"/.exec(key)?.[1]?.replace('Inf', 'Infinity'));
    const series = key
      .replace('_bucket', '_count')
      .replace(/,?le="[^"]+"/, '')
      .replace('{,', '{')
      .replace('{}', '');
    const before = last.get(series);
    if (before && (bound <= before.bound || value < before.value)) throw new Error(`${key} goes back`);
    last.set(series, { bound, value });
  }
  for (const [series, { bound, value }] of last)
    if (bound !== Infinity || values.get(series) !== value)
      throw new Error(`${series} is not its last bucket`);
}
