// A red message as soon as something fails: the latest cause, with a link to it.

import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { CircleX, X } from 'lucide-react';
import { useEffect, useRef, useState } from 'react';
import { call, type ResponseOf } from './lib/api.ts';
import { countText } from './lib/format.ts';
import { live } from './lib/live.ts';
import { allows, useSession } from './lib/session.ts';
import { IconButton } from './ui/parts.tsx';

export function FailureToast() {
  const session = useSession();
  const mayRead = allows(session, 'GET /admin/overview') && allows(session, 'GET /admin/failures');
  return mayRead && session.tenant === undefined ? <Toast /> : null;
}

/** The cause of the latest failure, if it failed after the page was opened. */
function Toast() {
  const client = useQueryClient();
  const [openedAt] = useState(() => new Date().toISOString());
  const [closed, setClosed] = useState('');
  const lowest = useRef<number>(undefined);
  const { data } = useQuery({
    queryKey: ['overview'],
    queryFn: ({ signal }) => call('GET /admin/overview', { signal }),
  });
  useEffect(
    () => live.watchOverview(() => void client.invalidateQueries({ queryKey: ['overview'] })),
    [client],
  );
  const failures = data === undefined ? 0 : failuresOf(data);
  if (data !== undefined) lowest.current = Math.min(lowest.current ?? failures, failures);
  const { data: groups } = useQuery({
    queryKey: ['failures', 'latest', failures],
    queryFn: ({ signal }) => call('GET /admin/failures', { signal }),
    enabled: failures > (lowest.current ?? failures),
  });
  const shown = groups?.items[0];
  if (shown === undefined || shown.last < openedAt || shown.last === closed) return null;
  const close = (): void => setClosed(shown.last);
  return (
    <div
      role="alert"
      className="fixed right-4 bottom-4 z-50 flex items-start max-sm:left-4 sm:max-w-sm gap-2 rounded-lg border border-bad bg-panel p-3 text-xs shadow-lg"
    >
      <CircleX size={16} aria-hidden className="mt-0.5 shrink-0 text-bad" />
      <div className="min-w-0 flex-1">
        <p className="mono font-medium break-all text-bad">{shown.where}</p>
        <p className="break-words">
          {shown.title} ×{countText(shown.count)}
        </p>
        <Link
          to="/failures"
          search={{ group: shown.fingerprint }}
          onClick={close}
          className="font-medium text-accent hover:underline"
        >
          Show the cause
        </Link>
      </div>
      <IconButton label="Close the message" icon={X} onClick={close} />
    </div>
  );
}

function failuresOf({ failures }: ResponseOf<'GET /admin/overview'>): number {
  return Object.values(failures).reduce((sum, count) => sum + count, 0);
}
