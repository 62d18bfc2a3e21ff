import { useEffect, useState } from 'preact/hooks';
import { Sign } from './icons.tsx';
import { t } from './messages.ts';

/** A button that copies `text`, and says whether it could until the keyboard or the pointer goes elsewhere. */
export function CopyButton({ text }: { readonly text: string }) {
  const [outcome, setOutcome] = useState<'copied' | 'failed'>();
  useEffect(() => setOutcome(undefined), [text]);
  const label = outcome === 'copied' ? t('copied') : outcome === 'failed' ? t('copyFailed') : t('copyText');
  return (
    <>
      <button
        type="button"
        class="button copy"
        onClick={(event) => {
          const button = event.currentTarget;
          copy(text, button).then(
            () => setOutcome('copied'),
            () => setOutcome('failed'),
          );
        }}
        onBlur={() => setOutcome(undefined)}
      >
        <Sign name={outcome === 'copied' ? 'check' : 'copy'} />
        {label}
      </button>
      <span class="unseen" role="status">
        {outcome && label}
      </span>
    </>
  );
}

async function copy(text: string, button: HTMLElement): Promise<void> {
  // Browsers have it on https and on this machine only.
  if ('clipboard' in navigator) return navigator.clipboard.writeText(text);
  if (!copiedBySelection(text, button)) throw new Error('the browser does not copy');
}

/** Copies by the older way, which needs no https. */
function copiedBySelection(text: string, button: HTMLElement): boolean {
  const area = document.createElement('textarea');
  area.className = 'unseen';
  area.value = text;
  // Outside of an open dialog nothing can be selected.
  button.after(area);
  area.select();
  const isCopied = document.execCommand('copy');
  area.remove();
  button.focus();
  return isCopied;
}
