// A bulk action: started with the number that was shown, and followed until it has ended.

import { useMutation, useQuery } from '@tanstack/react-query';
import { useEffect, useRef } from 'react';
import type { Api } from '../api.gen.ts';
import { call, type ResponseOf } from './api.ts';

type BulkOrder = NonNullable<Api['POST /admin/bulk']['body']>;
type BulkAction = ResponseOf<'GET /admin/bulk/{id}'>;

export type BulkFilter = BulkOrder['filter'];
export type BulkVerb = BulkOrder['action'];

export const bulkVerbs = [
  {
    action: 'replay',
    title: 'Replay',
    none: 'None of them can be replayed: messages that are tried again by themselves can be retried now.',
  },
  {
    action: 'retry',
    title: 'Retry now',
    none: 'None of them is tried again by itself.',
  },
  { action: 'discard', title: 'Discard', none: 'None of them can be discarded.' },
] as const satisfies readonly {
  readonly action: BulkVerb;
  readonly title: string;
  readonly none: string;
}[];

const pollMs = 300;

export function isRunning(action: BulkAction | undefined): boolean {
  if (action === undefined) return false;
  return !['completed', 'failed', 'cancelled'].includes(action.state);
}

/** `onEnded`: the failures have changed. `known`: the action that was started before, if it is in the address. */
export function useBulk(onEnded: () => void, known?: string) {
  const started = useMutation({
    mutationFn: (order: BulkOrder) => call('POST /admin/bulk', { body: order }),
    // Another number matches now, so the page is out of date.
    onError: onEnded,
  });
  const startedId = started.data?.id;
  const id = known ?? startedId;
  const { data: action = started.data, error: readError } = useQuery({
    queryKey: ['bulk', id],
    queryFn: ({ signal }) => call('GET /admin/bulk/{id}', { params: { id: id ?? '' }, signal }),
    enabled: id !== undefined,
    refetchInterval: ({ state }) => (isRunning(state.data ?? started.data) ? pollMs : false),
  });
  const cancelling = useMutation({
    mutationFn: () => call('POST /admin/bulk/{id}/cancel', { params: { id: id ?? '' } }),
  });
  const hasEnded = action !== undefined && !isRunning(action);
  const handler = useRef(onEnded);
  handler.current = onEnded;
  useEffect(() => {
    if (hasEnded) handler.current();
  }, [hasEnded, id]);
  return {
    startedId,
    action,
    readError,
    error: started.error ?? cancelling.error,
    isPending: started.isPending,
    start: started.mutate,
    cancel: () => cancelling.mutate(),
  };
}
