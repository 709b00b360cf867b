// The search of a view, with the details of one row. To open them adds an entry to the history, so Back closes them.

import { useNavigate, useRouter } from '@tanstack/react-router';

declare module '@tanstack/react-router' {
  interface HistoryState {
    /** The address of the list that the details were opened from: that of the entry before. */
    readonly list?: string;
  }
}

/** Until the browser has gone back, the address is the old one. */
let isLeaving = false;

/** Changes fields of the search. `detail` is the field of the open row; undefined: no details are shown. */
export function useSearchChange<Search extends object>(
  detail: keyof Search & string,
): (change: Partial<Search>) => void {
  const router = useRouter();
  const navigate = useNavigate();
  return (change) => {
    if (isLeaving) return;
    const { search, state } = router.latestLocation;
    const now: Readonly<Record<string, unknown>> = search;
    const hrefWith = (more: object): string =>
      router.buildLocation({ to: '.', search: (before: object) => ({ ...before, ...more }) }).href;
    if (state.list !== undefined && hrefWith(change) === state.list) {
      isLeaving = true;
      const stop = router.history.subscribe(() => {
        stop();
        isLeaving = false;
      });
      return router.history.back();
    }
    const opens = change[detail] !== undefined && now[detail] === undefined;
    void navigate({
      to: '.',
      search: (before: object) => ({ ...before, ...change }),
      replace: !opens,
      state: opens ? { list: hrefWith({ [detail]: undefined }) } : true,
    });
  };
}
