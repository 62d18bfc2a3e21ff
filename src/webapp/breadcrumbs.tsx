import { t } from './messages.ts';
import { addressOf, nameOf, pathsTo } from './paths.ts';

interface Props {
  readonly path: string;
  readonly onOpen: (path: string) => void;
}

/** The folders from the drive's root to the shown one. */
export function Breadcrumbs({ path, onOpen }: Props) {
  return (
    <nav class="crumbs" aria-label={t('breadcrumbs')}>
      <ol>
        {pathsTo(path).map((each) => (
          <li key={each}>
            <a
              href={addressOf(each, 'folder')}
              aria-current={each === path ? 'page' : undefined}
              onClick={(event) => {
                if (event.ctrlKey || event.metaKey || event.shiftKey) return;
                event.preventDefault();
                onOpen(each);
              }}
            >
              {nameOf(each) || t('drive')}
            </a>
          </li>
        ))}
      </ol>
    </nav>
  );
}
