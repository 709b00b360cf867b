// A bulk action: started with the number that was shown, and followed until it has ended.

import { useMutation, useQuery } from '@tanstack/react-query';
import { useEffect, useRef } from 'react';
import type { Api } from '../api.gen.ts';
import { call, type ResponseOf } from './api.ts';

type BulkOrder = NonNullable<Api['POST /admin/bulk']['body']>;
type BulkAction = ResponseOf<'GET /admin/bulk/{id}'>;

export type BulkFilter = BulkOrder['filter'];

const pollMs = 300;

export function isRunning(action: BulkAction | undefined): boolean {
  if (action === undefined) return false;
  return !['completed', 'failed', 'cancelled'].includes(action.state);
}

/** `onEnded`: the failures have changed. */
export function useBulk(onEnded: () => void) {
  const started = useMutation({
    mutationFn: (order: BulkOrder) => call('POST /admin/bulk', { body: order }),
    // Another number matches now, so the page is out of date.
    onError: onEnded,
  });
  const id = started.data?.id;
  const { data: action = started.data } = useQuery({
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
    action,
    error: started.error ?? cancelling.error,
    isPending: started.isPending,
    start: started.mutate,
    cancel: () => cancelling.mutate(),
  };
}
