import { useId, useRef, useState } from 'preact/hooks';
import { type DriveAddress, mountCommands } from './connect-commands.ts';
import { CopyButton } from './copy-button.tsx';
import { Dialog } from './dialogs.tsx';
import { t } from './messages.ts';
import { base } from './paths.ts';

const SYSTEMS = ['windows', 'macos', 'linux', 'android', 'ios'] as const;

type System = (typeof SYSTEMS)[number];

interface Props {
  /** `undefined` on a drive without a login. */
  readonly user: string | undefined;
  readonly onClose: () => void;
}

/** How other programs connect to the drive: the visitor's own system first. */
export function ConnectDialog({ user, onClose }: Props) {
  const [own] = useState(ownSystem);
  const [system, setSystem] = useState(own);
  const tabs = useRef<HTMLDivElement>(null);
  const id = useId();
  const order = [own, ...SYSTEMS.filter((each) => each !== own)];
  const address = { url: `${location.origin}${base}/`, user };
  /** Goes to another tab by an arrow key. */
  const step = (by: number) => {
    const at = (order.indexOf(system) + by + order.length) % order.length;
    setSystem(order[at] ?? own);
    tabs.current?.querySelectorAll<HTMLElement>('[role=tab]')[at]?.focus();
  };
  return (
    <Dialog title={t('connectTitle')} isWide onClose={onClose}>
      <p>{t('driveAddress')}</p>
      <Command text={address.url} />
      <p>{user === undefined ? t('noLogin') : t('loginAs', user)}</p>
      <div
        ref={tabs}
        role="tablist"
        aria-label={t('systems')}
        class="tabs"
        onKeyDown={(event) => {
          if (event.key === 'ArrowRight') step(1);
          if (event.key === 'ArrowLeft') step(-1);
        }}
      >
        {order.map((each) => (
          <button
            type="button"
            key={each}
            role="tab"
            id={`${id}-${each}`}
            aria-selected={each === system}
            aria-controls={`${id}-panel`}
            tabIndex={each === system ? 0 : -1}
            onClick={() => setSystem(each)}
          >
            {t(each)}
          </button>
        ))}
      </div>
      <div role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-${system}`} class="steps">
        <Steps system={system} address={address} />
      </div>
      <div class="actions">
        <button type="button" class="button" onClick={onClose}>
          {t('close')}
        </button>
      </div>
    </Dialog>
  );
}

/** The steps for one system, as in `docs/mount/`. */
function Steps({ system, address }: { readonly system: System; readonly address: DriveAddress }) {
  const commands = mountCommands(address);
  const isPlain = address.url.startsWith('http:');
  if (system === 'windows')
    return (
      <>
        <p>{t(isPlain ? 'windowsOnceHttp' : 'windowsOnce')}</p>
        <Command text={commands.windowsOnce} />
        <p>{t('windowsExplorer')}</p>
        <p>{t('windowsCommand')}</p>
        <Command text={commands.netUse} />
        <p>{t('windowsLarge')}</p>
      </>
    );
  if (system === 'macos')
    return (
      <>
        <p>{t('macFinder')}</p>
        <p>{t('inTerminal')}</p>
        <Command text={commands.macMount} />
        <p>{t('macRclone')}</p>
        <Command text={commands.rclone} />
      </>
    );
  if (system === 'linux')
    return (
      <>
        <p>{t('linuxFiles')}</p>
        <Command text={commands.gnome} />
        <p>{t('linuxDolphin')}</p>
        <Command text={commands.dolphin} />
        <p>{t('inTerminal')}</p>
        <Command text={commands.gioMount} />
        <p>{t('linuxDavfs')}</p>
        <Command text={commands.davfs} />
        <p>{t('linuxDavfsEmpty')}</p>
        <p>{t('linuxRclone')}</p>
        <Command text={commands.rclone} />
      </>
    );
  return (
    <>
      <p>{t(system === 'android' ? 'androidApps' : 'iosApps')}</p>
      <p>{t('mobilePlayers')}</p>
      <p>{t('mobileAddress')}</p>
      {(isPlain || isOnlyHere()) && <p>{t('mobileNeeds')}</p>}
    </>
  );
}

/** A command or an address to be copied. */
function Command({ text }: { readonly text: string }) {
  return (
    <div class="command">
      <pre>{text}</pre>
      <CopyButton text={text} />
    </div>
  );
}

/** Whether the page's address leads other machines to themselves. */
function isOnlyHere(): boolean {
  return /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(location.hostname);
}

/** Returns the system that the browser runs on. */
function ownSystem(): System {
  const { platform, maxTouchPoints } = navigator;
  if (platform.startsWith('Win')) return 'windows';
  if (/^(iPhone|iPad|iPod)/.test(platform)) return 'ios';
  // An iPad calls itself a Mac, which has no touch screen.
  if (platform.startsWith('Mac')) return maxTouchPoints > 1 ? 'ios' : 'macos';
  return maxTouchPoints > 0 && /arm|aarch/i.test(platform) ? 'android' : 'linux';
}
