import { useEffect, useState } from 'preact/hooks';
import { type Item, readText } from './dav.ts';
import { failureText } from './folder.ts';
import { t } from './messages.ts';
import type { Rendered } from './rendered.ts';

interface Shown {
  readonly text: string;
  readonly rendered?: Rendered | undefined;
}

/** Shows a text: a document in Markdown, highlighted code, or the text as it is. */
export function TextPreview({ item }: { readonly item: Item }) {
  const [shown, setShown] = useState<Shown>();
  useEffect(() => {
    const ended = new AbortController();
    const { signal } = ended;
    const load = async (): Promise<Shown> => {
      const text = await readText(item.path, signal);
      // Without the libraries the text is shown as it is.
      const library = await import('./rendered.ts').catch(() => undefined);
      return { text, rendered: library?.rendered(item.name, text) };
    };
    load().then(
      (loaded) => !signal.aborted && setShown(loaded),
      (error: unknown) => !signal.aborted && setShown({ text: failureText(error) }),
    );
    return () => ended.abort();
  }, [item]);
  const rendered = shown?.rendered;
  if (rendered?.kind === 'markdown')
    return (
      <article
        class="markdown"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard must be able to scroll it
        tabIndex={0}
        // `rendered` escapes what comes from the file.
        dangerouslySetInnerHTML={{ __html: rendered.markup }}
      />
    );
  if (rendered)
    return (
      <pre
        class="code"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: see above
        tabIndex={0}
        dangerouslySetInnerHTML={{ __html: rendered.markup }}
      />
    );
  // biome-ignore lint/a11y/noNoninteractiveTabindex: see above
  return <pre tabIndex={0}>{shown?.text ?? t('loading')}</pre>;
}
