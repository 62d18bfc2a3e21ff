import { useDropTarget } from './drag.ts';
import { t } from './messages.ts';
import type { How } from './operations.ts';
import { addressOf, nameOf, pathsTo } from './paths.ts';

interface Props {
  readonly path: string;
  readonly onOpen: (path: string) => void;
  /** Called when the dragged items are dropped on a folder. Absent where nothing is dragged. */
  readonly onItems?: ((how: How, folder: string) => void) | undefined;
}

/** The folders from the drive's root to the shown one. */
export function Breadcrumbs({ path, onOpen, onItems }: Props) {
  return (
    <nav class="crumbs" aria-label={t('breadcrumbs')}>
      <ol>
        {pathsTo(path).map((each) => (
          <li key={each}>
            <Crumb
              path={each}
              isCurrent={each === path}
              onOpen={onOpen}
              onItems={onItems && each !== path ? (how) => onItems(how, each) : undefined}
            />
          </li>
        ))}
      </ol>
    </nav>
  );
}

interface CrumbProps {
  readonly path: string;
  readonly isCurrent: boolean;
  readonly onOpen: (path: string) => void;
  readonly onItems: ((how: How) => void) | undefined;
}

function Crumb({ path, isCurrent, onOpen, onItems }: CrumbProps) {
  const [isOver, target] = useDropTarget(onItems);
  return (
    <a
      href={addressOf(path, 'folder')}
      aria-current={isCurrent ? 'page' : undefined}
      class={isOver ? 'target' : undefined}
      onClick={(event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey) return;
        event.preventDefault();
        onOpen(path);
      }}
      {...target}
    >
      {nameOf(path) || t('drive')}
    </a>
  );
}
