import { useState } from 'preact/hooks';
import { ConnectDialog } from './connect-dialog.tsx';
import { LinksDialog } from './links-dialog.tsx';
import { t } from './messages.ts';
import { Action } from './toolbar.tsx';

interface Props {
  /** `undefined` on a drive without a login. */
  readonly user: string | undefined;
  readonly onOpen: (folder: string) => void;
}

/** The buttons about the whole drive. */
export function DriveMenu({ user, onOpen }: Props) {
  const [shown, setShown] = useState<'links' | 'connect'>();
  const close = () => setShown(undefined);
  const open = (folder: string) => {
    close();
    onOpen(folder);
  };
  return (
    <>
      <div class="actions">
        <Action sign="link" label={t('sharedLinks')} onPress={() => setShown('links')} />
        <Action sign="connect" label={t('connect')} onPress={() => setShown('connect')} />
      </div>
      {shown === 'links' && <LinksDialog onOpen={open} onClose={close} />}
      {shown === 'connect' && <ConnectDialog user={user} onClose={close} />}
    </>
  );
}
