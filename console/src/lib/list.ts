// The rows of a list view: pages that are loaded on demand, kept current in place. New rows are announced, never inserted.

import {
  useInfiniteQuery,
  useQuery,
  useQueryClient,
  type UseQueryResult,
} from '@tanstack/react-query';
import { useMemo } from 'react';
import { ApiError } from './api.ts';

export interface List<Row> {
  readonly rows: readonly Row[];
  readonly error: Error | null;
  /** Why the next page is missing. */
  readonly moreError: Error | null;
  readonly isPending: boolean;
  readonly retry: () => void;
  readonly hasMore: boolean;
  readonly more: () => void;
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
    moreError: isEmpty ? null : pages.error,
    isPending: pages.isPending,
    retry: () => void pages.refetch(),
    hasMore: pages.hasNextPage,
    more: () => void pages.fetchNextPage(),
    fresh: isEmpty ? 0 : [...current.keys()].filter((key) => !known.has(key)).length,
    showFresh: () => void client.resetQueries({ queryKey }),
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
    isPending,
    retry: () => void refetch(),
    hasMore: false,
    more: nothing,
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
