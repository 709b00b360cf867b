// What a view shows when it has nothing, waits, or failed.

import {
  CircleSlash,
  Inbox,
  LockKeyhole,
  SearchX,
  TriangleAlert,
  type LucideIcon,
} from 'lucide-react';
import { useEffect, useState, type ReactNode } from 'react';
import { ApiError } from '../lib/api.ts';
import type { NextPage } from '../lib/list.ts';
import { useSession } from '../lib/session.ts';
import { Button, CopyButton, cx } from './parts.tsx';

function State({
  icon: Icon,
  title,
  children,
}: {
  readonly icon: LucideIcon;
  readonly title: string;
  readonly children?: ReactNode;
}) {
  return (
    <div className="flex flex-col items-center justify-center gap-2 px-6 py-14 text-center">
      <span className="mb-1 flex size-10 items-center justify-center rounded-full bg-sunken text-soft">
        <Icon size={18} aria-hidden />
      </span>
      <p className="font-medium">{title}</p>
      <div className="flex max-w-lg flex-col items-center gap-3 text-xs text-soft">{children}</div>
    </div>
  );
}

/** Nothing was ever there: the command that changes this. */
export function Empty({
  title,
  children,
  command,
}: {
  readonly title: string;
  readonly children?: ReactNode;
  readonly command?: string;
}) {
  return (
    <State icon={Inbox} title={title}>
      {children}
      {command === undefined ? null : <Command text={command} />}
    </State>
  );
}

/** What was looked for does not exist. */
export function NotFound({
  title,
  children,
}: {
  readonly title: string;
  readonly children: ReactNode;
}) {
  return (
    <State icon={SearchX} title={title}>
      <p className="break-words">{children}</p>
    </State>
  );
}

export function NoMatch({
  onReset,
  children,
}: {
  readonly onReset: () => void;
  readonly children?: ReactNode;
}) {
  return (
    <State icon={SearchX} title="Nothing matches the filter">
      {children}
      <Button onClick={onReset}>Clear the filter</Button>
    </State>
  );
}

export function Command({ text }: { readonly text: string }) {
  return (
    <span className="mono flex max-w-full items-center gap-1 rounded-md border border-line bg-sunken py-1 pr-1 pl-3 text-left text-text">
      <span className="min-w-0 flex-1 wrap-anywhere">{text}</span>
      <CopyButton text={text} label="Copy the command" />
    </span>
  );
}

export function Failed({
  error,
  gone,
  onRetry,
}: {
  readonly error: Error;
  /** Why there may be nothing at this address. */
  readonly gone?: string;
  readonly onRetry?: () => void;
}) {
  if (!(error instanceof ApiError)) {
    return (
      <State icon={CircleSlash} title="The server does not respond">
        <p>The console keeps trying. Numbers and lists are from before the connection was lost.</p>
        {onRetry === undefined ? null : <Button onClick={onRetry}>Try again</Button>}
      </State>
    );
  }
  if (error.status === 403) return <Forbidden error={error} />;
  const { problem } = error;
  if (error.status === 404 && gone !== undefined) {
    return (
      <State icon={SearchX} title={problem?.title ?? 'Not found'}>
        <p className="break-words first-letter:uppercase">{error.message}</p>
        <p>{gone}</p>
      </State>
    );
  }
  return (
    <State
      icon={error.status === 404 ? SearchX : TriangleAlert}
      title={problem?.title ?? 'The request failed'}
    >
      <p className="break-words first-letter:uppercase">{error.message}</p>
      {problem === undefined ? null : (
        <>
          <p>{problem.remedy}</p>
          <p className="mono flex items-center gap-1">
            {problem.code} · request {problem.requestId}
            <CopyButton text={problem.requestId} label="Copy the request id" />
          </p>
        </>
      )}
      {onRetry === undefined ? null : <Button onClick={onRetry}>Try again</Button>}
    </State>
  );
}

/** Below the rows of a list: loads the next page, or says why it is missing. The rows stay. */
export function MoreRows({
  page: { moreError, hasMore, isLoading, more },
  label = 'Load more',
}: {
  readonly page: NextPage;
  readonly label?: string;
}) {
  if (moreError === null) {
    return hasMore ? (
      <Button className="self-center" disabled={isLoading} onClick={more}>
        {isLoading ? 'Loading…' : label}
      </Button>
    ) : null;
  }
  const problem = moreError instanceof ApiError ? moreError.problem : undefined;
  return (
    <div
      role="alert"
      className="flex flex-wrap items-center gap-x-4 gap-y-3 rounded-lg border border-line bg-panel px-4 py-3 text-xs"
    >
      <div className="flex min-w-0 flex-1 basis-72 gap-3">
        <TriangleAlert size={16} aria-hidden className="mt-0.5 shrink-0 text-bad" />
        <div className="flex min-w-0 flex-col gap-1">
          <p className="font-medium">More rows could not be loaded</p>
          <p className="break-words text-soft">
            {moreError instanceof ApiError
              ? moreError.message
              : 'The server does not respond. The rows above are from before the connection was lost.'}
          </p>
          {problem === undefined ? null : <p className="text-soft">{problem.remedy}</p>}
          {problem === undefined ? null : (
            <p className="mono flex items-center gap-1 text-2xs break-all text-soft">
              {problem.code} · request {problem.requestId}
              <CopyButton text={problem.requestId} label="Copy the request id" />
            </p>
          )}
        </div>
      </div>
      <Button disabled={isLoading} onClick={more}>
        {isLoading ? 'Loading…' : 'Try again'}
      </Button>
    </div>
  );
}

function Forbidden({ error }: { readonly error: ApiError }) {
  const { name, scopes, tenant } = useSession();
  const scope = error.problem?.details?.['scope'];
  return (
    <State icon={LockKeyhole} title="Not allowed for this session">
      <p>
        You are signed in as <b className="text-text">{name}</b> with {scopes.join(', ')}
        {tenant === undefined ? '' : ` for the tenant ${tenant}`}.
      </p>
      {typeof scope === 'string' ? (
        <>
          <p>This needs the scope “{scope}”. An administrator can create such a token:</p>
          <Command text={`millrace token create ${name}-${scope} --scope ${scope}`} />
        </>
      ) : (
        <p className="first-letter:uppercase">{error.message}</p>
      )}
    </State>
  );
}

/** Has its height at once, and appears only if loading takes long enough to be noticed. */
export function Loading({ rows = 6 }: { readonly rows?: number }) {
  const [isLate, setLate] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), 150);
    return () => clearTimeout(timer);
  }, []);
  return (
    <div role="status" aria-label="Loading" className="flex flex-col gap-2 p-4">
      {Array.from({ length: rows }, (_, at) => (
        <div key={at} className={cx('h-6 rounded', isLate && 'pulse bg-sunken')} />
      ))}
    </div>
  );
}
