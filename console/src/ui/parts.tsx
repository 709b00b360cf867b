// The small parts of all views.

import { Link } from '@tanstack/react-router';
import { Check, Copy as CopyIcon, type LucideIcon } from 'lucide-react';
import { Fragment, useEffect, useState, type ComponentProps, type ReactNode } from 'react';
import { agoText, timeText, utcText } from '../lib/format.ts';
import { useLiveStatus } from '../lib/live.ts';

export function cx(...names: readonly (string | false | undefined)[]): string {
  return names.filter(Boolean).join(' ');
}

type Tone = 'accent' | 'bad' | 'good' | 'neutral' | 'warn';

const tones: Readonly<Record<Tone, string>> = {
  accent: 'bg-accent-wash text-accent',
  bad: 'bg-bad-wash text-bad',
  good: 'bg-good-wash text-good',
  neutral: 'bg-sunken text-soft',
  warn: 'bg-warn-wash text-warn',
};

export function Badge({
  tone = 'neutral',
  children,
}: {
  readonly tone?: Tone;
  readonly children: ReactNode;
}) {
  return (
    <span
      className={cx(
        'inline-flex h-5 items-center gap-1 rounded-full px-2 text-2xs font-medium whitespace-nowrap',
        tones[tone],
      )}
    >
      {children}
    </span>
  );
}

const buttonStyles = {
  primary: 'bg-accent text-on-accent hover:opacity-90',
  plain: 'border border-line bg-panel text-text hover:bg-hover',
  quiet: 'text-soft hover:bg-hover hover:text-text',
} as const;

export function Button({
  look = 'plain',
  className,
  ...rest
}: ComponentProps<'button'> & { readonly look?: keyof typeof buttonStyles }) {
  return (
    <button
      type="button"
      {...rest}
      className={cx(
        'inline-flex h-8 items-center justify-center gap-1.5 rounded-md px-3 text-xs font-medium whitespace-nowrap transition-colors disabled:opacity-50',
        buttonStyles[look],
        className,
      )}
    />
  );
}

/** The attributes of a button that changes something: without a connection it is disabled, and says why. */
export function useOffline(): Pick<ComponentProps<'button'>, 'disabled' | 'title'> {
  const { state } = useLiveStatus();
  if (state !== 'offline') return {};
  return { disabled: true, title: 'No connection to the server: nothing can be changed' };
}

/** A button that changes something. */
export function ChangeButton(props: ComponentProps<typeof Button>) {
  return <Button {...props} {...useOffline()} />;
}

/** A button without text. */
export function IconButton({
  label,
  icon: Icon,
  className,
  onClick,
}: {
  readonly label: string;
  readonly icon: LucideIcon;
  readonly className?: string;
  readonly onClick: () => void;
}) {
  return (
    <button
      type="button"
      aria-label={label}
      onClick={onClick}
      className={cx(
        'size-8 items-center justify-center rounded-md text-soft hover:bg-hover hover:text-text',
        className ?? 'inline-flex',
      )}
    >
      <Icon size={16} aria-hidden />
    </button>
  );
}

export function Panel({
  title,
  aside,
  children,
  className,
}: {
  readonly title?: string;
  readonly aside?: ReactNode;
  readonly children: ReactNode;
  readonly className?: string;
}) {
  return (
    <section className={cx('overflow-hidden rounded-lg border border-line bg-panel', className)}>
      {title === undefined ? null : (
        <header className="flex h-10 items-center gap-3 border-b border-line px-4">
          <h2 className="text-xs font-semibold">{title}</h2>
          <div className="ml-auto flex items-center gap-2 text-2xs text-soft">{aside}</div>
        </header>
      )}
      {children}
    </section>
  );
}

export function PageTitle({
  title,
  name = '',
  children,
}: {
  readonly title: string;
  /** What the page is about, for the title of the browser. */
  readonly name?: string;
  readonly children?: ReactNode;
}) {
  useEffect(() => {
    document.title = `${title} ${name}`.trimEnd() + ' · Millrace';
  }, [title, name]);
  return (
    <header className="flex min-h-8 flex-wrap items-center gap-x-3 gap-y-2">
      <h1 className="text-base font-semibold tracking-tight">{title}</h1>
      {children}
    </header>
  );
}

export function Kbd({ children }: { readonly children: ReactNode }) {
  return (
    <kbd className="mono inline-flex h-5 min-w-5 items-center justify-center rounded border border-line bg-sunken px-1 text-2xs text-soft">
      {children}
    </kbd>
  );
}

/** Local time, UTC in the tooltip. */
export function Time({ at }: { readonly at: string }) {
  return (
    <time dateTime={at} title={utcText(at)} className="mono whitespace-nowrap text-soft">
      {timeText(at)}
    </time>
  );
}

/** Counts on while it is shown. */
export function Ago({ at }: { readonly at: string }) {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, []);
  return (
    <time dateTime={at} title={utcText(at)} className="whitespace-nowrap text-soft">
      {agoText(at, now)}
    </time>
  );
}

/** `isDone` holds for a moment after a copy. */
export function useCopied(): {
  readonly isDone: boolean;
  readonly copy: (text: string) => void;
} {
  const [isDone, setDone] = useState(false);
  useEffect(() => {
    if (!isDone) return undefined;
    const timer = setTimeout(() => setDone(false), 1_200);
    return () => clearTimeout(timer);
  }, [isDone]);
  return { isDone, copy: (text) => void copyText(text).then(setDone) };
}

export function CopyButton({
  text,
  label,
}: {
  /** A function for a text that takes work to write. */
  readonly text: string | (() => string);
  readonly label: string;
}) {
  const { isDone, copy } = useCopied();
  const Icon = isDone ? Check : CopyIcon;
  return (
    <button
      type="button"
      aria-label={isDone ? 'Copied' : label}
      title={label}
      onClick={() => copy(typeof text === 'string' ? text : text())}
      className="inline-flex size-6 shrink-0 items-center justify-center rounded text-soft hover:bg-hover hover:text-text"
    >
      <Icon size={13} aria-hidden />
    </button>
  );
}

/** Over plain HTTP browsers have no clipboard API. */
async function copyText(text: string): Promise<boolean> {
  if (navigator.clipboard !== undefined) {
    await navigator.clipboard.writeText(text);
    return true;
  }
  const area = document.createElement('textarea');
  area.value = text;
  document.body.append(area);
  area.select();
  const isCopied = document.execCommand('copy');
  area.remove();
  return isCopied;
}

export const linkStyle =
  'rounded-sm text-accent decoration-accent/40 underline-offset-2 hover:underline';

/** A name that breaks after its separators if it does not fit. */
export function breakable(name: string): ReactNode {
  return name.split(/(?<=[:.-])/).map((part, at) => (
    <Fragment key={at}>
      {at === 0 ? null : <wbr />}
      {part}
    </Fragment>
  ));
}

export function StreamLink({
  stream,
  children,
}: {
  readonly stream: string;
  readonly children?: ReactNode;
}) {
  return (
    <Link to="/streams/$stream" params={{ stream }} className={cx('mono wrap-anywhere', linkStyle)}>
      {children ?? breakable(stream)}
    </Link>
  );
}

export function TraceLink({
  id,
  node,
  children,
}: {
  readonly id: string;
  /** The node that is explained. */
  readonly node?: string;
  readonly children?: ReactNode;
}) {
  const search = node === undefined ? {} : ({ view: 'explain', node } as const);
  return (
    <Link
      to="/traces/$id"
      params={{ id }}
      search={search}
      className={cx('mono break-all', linkStyle)}
    >
      {children ?? id}
    </Link>
  );
}

/** A row of a list of facts. */
export function Fact({ name, children }: { readonly name: string; readonly children: ReactNode }) {
  return (
    <>
      <dt className="py-1 text-soft">{name}</dt>
      <dd className="flex min-w-0 flex-wrap items-center gap-1 py-1 has-[>.mono+button]:flex-nowrap">
        {children}
      </dd>
    </>
  );
}

export function Facts({ children }: { readonly children: ReactNode }) {
  return (
    <dl className="grid grid-cols-[7rem_1fr] items-start gap-x-3 text-xs sm:grid-cols-[8rem_1fr]">
      {children}
    </dl>
  );
}

/** A titled part of a detail panel. */
export function Part({
  title,
  children,
}: {
  readonly title: string;
  readonly children: ReactNode;
}) {
  return (
    <section className="flex flex-col gap-2">
      <h3 className="text-xs font-semibold">{title}</h3>
      {children}
    </section>
  );
}
