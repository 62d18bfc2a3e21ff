import { CopyButton } from './copy-button.tsx';
import { t } from './messages.ts';
import { QrCode } from './qr-code.tsx';

/** The address of a link, to be copied or scanned. */
export function LinkAddress({ url }: { readonly url: string }) {
  return (
    <>
      <div class="link">
        <input
          readOnly
          aria-label={t('link')}
          value={url}
          onFocus={(event) => event.currentTarget.select()}
        />
        <CopyButton text={url} />
      </div>
      <QrCode text={url} label={t('qrCode')} />
    </>
  );
}
