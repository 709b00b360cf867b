// The rows of a list view: pages that are loaded on demand, kept current in place. New rows are announced, never inserted.

import {
  useInfiniteQuery,
  useQuery,
  useQueryClient,
  type UseInfiniteQueryResult,
  type UseQueryResult,
} from '@tanstack/react-query';
import { useMemo } from 'react';
import { ApiError } from './api.ts';

/** The page after the rows of a list. */
export interface NextPage {
  /** Why it is missing. */
  readonly moreError: Error | null;
  readonly hasMore: boolean;
  readonly isLoading: boolean;
  /** Loads it, or tries that again. */
  readonly more: () => void;
}

export interface List<Row> extends NextPage {
  readonly rows: readonly Row[];
  readonly error: Error | null;
  readonly isPending: boolean;
  readonly retry: () => void;
  /** How many new rows wait to be shown. */
  readonly fresh: number;
  readonly showFresh: () => void;
}

interface Page<Row> {
  readonly items: readonly Row[];
  readonly cursor?: string | undefined;
}

/** Asks again until the server refuses: a problem of the request does not go away by itself. */
export const poll = ({ state }: { readonly state: { readonly error: Error | null } }) =>
  state.error instanceof ApiError ? false : 4_000;

export const pageSize = 100;

export function useList<Row>({
  queryKey,
  load,
  keyOf,
}: {
  readonly queryKey: readonly unknown[];
  readonly load: (cursor: string | undefined, signal: AbortSignal) => Promise<Page<Row>>;
  readonly keyOf: (row: Row) => string;
}): List<Row> {
  const client = useQueryClient();
  const pages = useInfiniteQuery({
    queryKey: [...queryKey, 'pages'],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam, signal }) => load(pageParam, signal),
    getNextPageParam: (page) => page.cursor,
  });
  const newest = useQuery({
    queryKey: [...queryKey, 'newest'],
    queryFn: ({ signal }) => load(undefined, signal),
    enabled: pages.isSuccess,
    refetchInterval: poll,
  });
  const loaded = useMemo(() => pages.data?.pages.flatMap(({ items }) => items) ?? [], [pages.data]);
  const current = useMemo(
    () => new Map((newest.data?.items ?? []).map((row) => [keyOf(row), row])),
    [newest.data, keyOf],
  );
  const known = new Set(loaded.map(keyOf));
  const isEmpty = loaded.length === 0;
  return {
    rows: isEmpty ? [...current.values()] : loaded.map((row) => current.get(keyOf(row)) ?? row),
    error: isEmpty ? pages.error : null,
    ...nextPageOf(pages),
    isPending: pages.isPending,
    retry: () => void pages.refetch(),
    fresh: isEmpty ? 0 : [...current.keys()].filter((key) => !known.has(key)).length,
    showFresh: () => void client.resetQueries({ queryKey }),
  };
}

/** The rows stay while the next page, or reading them again, fails. */
export function nextPageOf(
  pages: Pick<
    UseInfiniteQueryResult,
    | 'data'
    | 'error'
    | 'fetchNextPage'
    | 'hasNextPage'
    | 'isFetching'
    | 'isFetchingNextPage'
    | 'isRefetchError'
    | 'refetch'
  >,
): NextPage {
  return {
    moreError: pages.data === undefined ? null : pages.error,
    hasMore: pages.hasNextPage,
    isLoading: pages.isFetchingNextPage || (pages.error !== null && pages.isFetching),
    more: () => void (pages.isRefetchError ? pages.refetch() : pages.fetchNextPage()),
  };
}

/** A list that one response contains. */
export function listOf<Row>(
  { error, isPending, refetch }: Omit<UseQueryResult, 'data'>,
  rows: readonly Row[] | undefined,
): List<Row> {
  const nothing = (): void => undefined;
  return {
    rows: rows ?? [],
    error: rows === undefined ? error : null,
    moreError: null,
    hasMore: false,
    isLoading: false,
    more: nothing,
    isPending,
    retry: () => void refetch(),
    fresh: 0,
    showFresh: nothing,
  };
}

export const jobStates = [
  'scheduled',
  'queued',
  'waiting',
  'running',
  'completed',
  'failed',
  'cancelled',
] as const;
