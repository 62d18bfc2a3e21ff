import { t } from './messages.ts';
import type { Search } from './search.ts';

interface BarProps {
  /** The text in the filter field. */
  readonly filter: string;
  /** The text that the drive was searched for; `undefined` while a folder is shown. */
  readonly query: string | undefined;
  readonly onSearch: () => void;
  readonly onEnd: () => void;
}

/** Offers to search the whole drive for the filter, and to leave what a search has found. */
export function SearchBar({ filter, query, onSearch, onEnd }: BarProps) {
  const wanted = filter.trim();
  if (wanted === '' && query === undefined) return null;
  return (
    <div class="search">
      {query !== undefined && (
        <>
          <h2>{t('foundNames', query)}</h2>
          <button type="button" class="button" onClick={onEnd}>
            {t('endSearch')}
          </button>
        </>
      )}
      {wanted !== '' && wanted !== query && (
        <button type="button" class="button" onClick={onSearch}>
          {t('searchDrive', wanted)}
        </button>
      )}
    </div>
  );
}

/** Says that more has been found than is shown, or why the rest cannot be shown. */
export function MoreFound({ items = [], more, failure }: Search) {
  if (items.length === 0 || (!more && failure === undefined)) return null;
  return (
    <div class="search rest">
      {failure === undefined ? (
        <span role="status">{t('moreFound')}</span>
      ) : (
        <span class="problem" role="alert">
          {failure}
        </span>
      )}
      {more && (
        <button type="button" class="button" onClick={more}>
          {failure === undefined ? t('showMore') : t('retry')}
        </button>
      )}
    </div>
  );
}
