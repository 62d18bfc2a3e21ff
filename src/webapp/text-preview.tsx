import { useEffect, useRef, useState } from 'preact/hooks';
import { DavFailure, find, type Item, readText } from './dav.ts';
import { failureText } from './folder.ts';
import { t } from './messages.ts';
import { nameOf, pathOfAddress } from './paths.ts';
import type { Rendered } from './rendered.ts';

interface Shown {
  readonly text: string;
  readonly rendered?: Rendered | undefined;
}

interface Props {
  readonly item: Item;
  /** The heading of a document that is shown first. */
  readonly section: string | undefined;
  /** Opens the file or folder that a link leads to. */
  readonly onFollow: (item: Item, section: string | undefined) => void;
}

/** Shows a text: a document in Markdown, highlighted code, or the text as it is. */
export function TextPreview({ item, section, onFollow }: Props) {
  const [shown, setShown] = useState<Shown>();
  useEffect(() => {
    const ended = new AbortController();
    const { signal } = ended;
    const load = async (): Promise<Shown> => {
      const text = await readText(item.path, signal);
      // Without the libraries the text is shown as it is.
      const library = await import('./rendered.ts').catch(() => undefined);
      return { text, rendered: library?.rendered(item.path, text) };
    };
    load().then(
      (loaded) => !signal.aborted && setShown(loaded),
      (error: unknown) => !signal.aborted && setShown({ text: failureText(error) }),
    );
    return () => ended.abort();
  }, [item]);
  const rendered = shown?.rendered;
  if (rendered?.kind === 'markdown')
    return <MarkdownDocument markup={rendered.markup} section={section} onFollow={onFollow} />;
  if (rendered)
    return (
      <pre
        class="code"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard must be able to scroll it
        tabIndex={0}
        // `rendered` escapes the text of the file.
        dangerouslySetInnerHTML={{ __html: rendered.markup }}
      />
    );
  // biome-ignore lint/a11y/noNoninteractiveTabindex: see above
  return <pre tabIndex={0}>{shown?.text ?? t('loading')}</pre>;
}

interface DocumentProps extends Pick<Props, 'section' | 'onFollow'> {
  readonly markup: string;
}

/** A document, whose links lead to its headings and to the previews of other files without leaving the page. */
function MarkdownDocument({ markup, section, onFollow }: DocumentProps) {
  const article = useRef<HTMLElement>(null);
  const [problem, setProblem] = useState<string>();
  const show = (id: string) => article.current?.querySelector(`#${CSS.escape(id)}`)?.scrollIntoView();
  useEffect(() => {
    if (section !== undefined) show(section);
  }, [section]);
  const follow = async (link: HTMLAnchorElement) => {
    const target = link.hash === '' ? undefined : decodeURIComponent(link.hash.slice(1));
    if (link.getAttribute('href')?.startsWith('#')) return show(target ?? '');
    const path = pathOfAddress(link.pathname);
    setProblem(undefined);
    try {
      onFollow(await find(path), target);
    } catch (error) {
      const isMissing = error instanceof DavFailure && error.status === 404;
      setProblem(isMissing ? t('linkLeadsNowhere', nameOf(path)) : failureText(error));
    }
  };
  return (
    <div class="document-frame">
      {problem !== undefined && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: the keyboard follows links by a click too */}
      <article
        ref={article}
        class="markdown"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard must be able to scroll it
        tabIndex={0}
        onClick={(event) => {
          const link = event.target instanceof Element ? event.target.closest('a') : null;
          if (!link?.hasAttribute('href') || link.target !== '') return;
          // The browser opens another window.
          if (event.ctrlKey || event.metaKey || event.shiftKey) return;
          event.preventDefault();
          void follow(link);
        }}
        // `rendered` escapes the text of the file.
        dangerouslySetInnerHTML={{ __html: markup }}
      />
    </div>
  );
}
