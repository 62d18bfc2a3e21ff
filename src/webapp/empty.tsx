import type { Item } from './dav.ts';
import { t } from './messages.ts';

interface Props {
  readonly items: readonly Item[] | undefined;
  readonly failure: string | undefined;
  readonly filter: string;
  /** The text that the drive was searched for; `undefined` for a folder. */
  readonly query: string | undefined;
  readonly reload: () => void;
  /** Whether the user may add files to the folder. */
  readonly canAdd: boolean;
}

/** What stands in place of the list. */
export function Empty({ items, failure, filter, query, reload, canAdd }: Props) {
  if (failure !== undefined)
    return (
      <div class="note" role="alert">
        <p>{t(query === undefined ? 'cannotList' : 'cannotSearch')}</p>
        <p>{failure}</p>
        <button type="button" class="button" onClick={reload}>
          {t('retry')}
        </button>
      </div>
    );
  if (!items) return <p class="note">{t(query === undefined ? 'loading' : 'searching')}</p>;
  if (query !== undefined) return <p class="note">{t('nothingFound', query)}</p>;
  if (filter !== '') return <p class="note">{t('noMatch', filter)}</p>;
  return (
    <div class="note">
      <p>{t('emptyFolder')}</p>
      {canAdd && <p>{t('emptyHint')}</p>}
    </div>
  );
}
