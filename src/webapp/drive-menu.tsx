import { useState } from 'preact/hooks';
import { AppPasswordsDialog } from './app-passwords-dialog.tsx';
import { ConnectDialog } from './connect-dialog.tsx';
import { failureText } from './folder.ts';
import { LinksDialog } from './links-dialog.tsx';
import { t } from './messages.ts';
import { signOut } from './session.ts';
import { Action } from './toolbar.tsx';
import type { Drive } from './use-drive.ts';

interface Props {
  readonly drive: Drive;
  /** Number of files that wait or were refused; `undefined` where none can, or none may be sent by this user. */
  readonly keptCount: number | undefined;
  readonly onKept: () => void;
  readonly onOpen: (folder: string) => void;
  readonly onProblem: (problem: string) => void;
}

/** The buttons about the whole drive. */
export function DriveMenu(props: Props) {
  const { drive, keptCount, onKept, onOpen, onProblem } = props;
  const [shown, setShown] = useState<'links' | 'connect' | 'app-passwords'>();
  const close = () => setShown(undefined);
  const open = (folder: string) => {
    close();
    onOpen(folder);
  };
  const leave = () => {
    signOut().catch((error: unknown) => onProblem(t('cannotSignOut', failureText(error))));
  };
  return (
    <>
      <div class="actions">
        {keptCount !== undefined && (
          <Action
            sign="clock"
            label={t('keptWrites')}
            badge={keptCount === 0 ? undefined : String(keptCount)}
            onPress={onKept}
          />
        )}
        <Action sign="link" label={t('sharedLinks')} onPress={() => setShown('links')} />
        <Action sign="connect" label={t('connect')} onPress={() => setShown('connect')} />
        {drive.hasAppPasswords && (
          <Action sign="key" label={t('appPasswords')} onPress={() => setShown('app-passwords')} />
        )}
        {drive.hasSession && <Action sign="leave" label={t('signOut')} onPress={leave} />}
      </div>
      {shown === 'links' && <LinksDialog drive={drive} onOpen={open} onClose={close} />}
      {shown === 'app-passwords' && <AppPasswordsDialog user={drive.user ?? ''} onClose={close} />}
      {shown === 'connect' && <ConnectDialog user={drive.user} onClose={close} />}
    </>
  );
}
