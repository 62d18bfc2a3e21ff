import { SaxesParser } from 'saxes';

/** A page of the keys in a bucket. */
export interface KeyPage {
  readonly keys: readonly string[];
  /** What to ask for the next page with; `undefined` after the last. */
  readonly continuation: string | undefined;
}

/** Returns the page in an answer of ListObjectsV2. Throws when the answer is no such XML. */
export function keyPageIn(xml: string): KeyPage {
  const texts = textsIn(xml);
  return {
    keys: texts.get('ListBucketResult/Contents/Key') ?? [],
    continuation: texts.get('ListBucketResult/NextContinuationToken')?.[0],
  };
}

/** Returns the code in the body of a refusal; empty if there is none. */
export function errorCodeIn(body: string): string {
  try {
    return textsIn(body).get('Error/Code')?.[0] ?? '';
  } catch {
    return '';
  }
}

/** Returns the texts of all elements by their path. */
function textsIn(xml: string): ReadonlyMap<string, readonly string[]> {
  const texts = new Map<string, string[]>();
  const open: string[] = [];
  let text = '';
  const parser = new SaxesParser();
  parser.on('opentag', ({ name }) => {
    open.push(name);
    text = '';
  });
  parser.on('text', (more) => {
    text += more;
  });
  parser.on('closetag', () => {
    const path = open.join('/');
    const those = texts.get(path) ?? [];
    those.push(text);
    texts.set(path, those);
    open.pop();
    text = '';
  });
  parser.on('error', (error) => {
    throw error;
  });
  parser.write(xml).close();
  return texts;
}
