// JSON as a tree that folds: always text, never markup. Large objects are folded, and long lists are shown in parts.

import { ChevronRight, EyeOff } from 'lucide-react';
import { useMemo, useState } from 'react';
import { useSession } from '../lib/session.ts';
import { CopyButton, cx } from './parts.tsx';

const shownMax = 100;
const textMax = 2_000;
/** Deeper values are folded when they are first shown. */
const openDepth = 3;
const copyDepthMax = 1_000;

export function JsonView({ value, label }: { readonly value: unknown; readonly label: string }) {
  const session = useSession();
  const isMasked = useMemo(
    () => session.isMasked === true && JSON.stringify(value ?? null).includes('•••'),
    [session, value],
  );
  return (
    <div className="relative rounded-md border border-line bg-sunken">
      {isMasked ? (
        <p className="flex items-center gap-1.5 border-b border-line py-1.5 pr-9 pl-3 text-2xs text-soft">
          <EyeOff size={12} aria-hidden className="shrink-0" />
          Values are masked; they need the scope admin.
        </p>
      ) : null}
      <div className={cx('absolute right-1.5', isMasked ? 'top-0.5' : 'top-1.5')}>
        <CopyButton text={() => textOf(value)} label={`Copy ${label}`} />
      </div>
      <div
        className="mono overflow-x-auto py-2 pr-9 pl-2 text-xs leading-5"
        aria-label={label}
        role="group"
      >
        <Value value={value} depth={0} isLast />
      </div>
    </div>
  );
}

/** Cut at a depth that no event of Millrace has, because deeper values exhaust the stack of the browser. */
function textOf(value: unknown): string {
  const depths = new WeakMap<object, number>();
  const cut = function (this: object, _key: string, each: unknown): unknown {
    if (typeof each !== 'object' || each === null) return each;
    const depth = (depths.get(this) ?? 0) + 1;
    depths.set(each, depth);
    return depth > copyDepthMax ? `[nested deeper than ${copyDepthMax} levels]` : each;
  };
  return JSON.stringify(value, cut, 2);
}

interface NodeProps {
  readonly name?: string | undefined;
  readonly value: unknown;
  readonly depth: number;
  readonly isLast: boolean;
}

function Value({ name, value, depth, isLast }: NodeProps) {
  if (typeof value !== 'object' || value === null) {
    return (
      <div className="pl-4 break-all whitespace-pre-wrap">
        <Name name={name} />
        <Scalar value={value} />
        {isLast ? '' : <span className="text-soft">,</span>}
      </div>
    );
  }
  return <Branch name={name} value={value} depth={depth} isLast={isLast} />;
}

function Branch({ name, value, depth, isLast }: NodeProps & { readonly value: object }) {
  const isList = Array.isArray(value);
  const entries = Object.entries(value);
  const [isOpen, setOpen] = useState(depth < openDepth && entries.length <= shownMax);
  const [shown, setShown] = useState(shownMax);
  const [open, close] = isList ? ['[', ']'] : ['{', '}'];
  if (entries.length === 0) {
    return (
      <div className="pl-4">
        <Name name={name} />
        {open}
        {close}
        {isLast ? '' : ','}
      </div>
    );
  }
  return (
    <div>
      <button
        type="button"
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
        className="flex w-full items-center rounded text-left hover:bg-hover"
      >
        <ChevronRight
          size={12}
          aria-hidden
          className={cx('mr-1 shrink-0 text-soft transition-transform', isOpen && 'rotate-90')}
        />
        <span className="break-all">
          <Name name={name} />
          {open}
          {isOpen ? null : (
            <span className="text-soft">
              {' '}
              {entries.length} {isList ? 'items' : 'keys'} {close}
            </span>
          )}
        </span>
      </button>
      {isOpen ? (
        <>
          <div className="ml-1.5 border-l border-line pl-2">
            {entries.slice(0, shown).map(([key, inner], at) => (
              <Value
                key={key}
                name={isList ? undefined : key}
                value={inner}
                depth={depth + 1}
                isLast={at === entries.length - 1}
              />
            ))}
            {entries.length > shown ? (
              <button
                type="button"
                onClick={() => setShown(shown + shownMax)}
                className="ml-4 text-accent hover:underline"
              >
                show {Math.min(shownMax, entries.length - shown)} more of {entries.length - shown}
              </button>
            ) : null}
          </div>
          <div className="pl-4">
            {close}
            {isLast ? '' : <span className="text-soft">,</span>}
          </div>
        </>
      ) : null}
    </div>
  );
}

function Name({ name }: { readonly name: string | undefined }) {
  if (name === undefined) return null;
  return (
    <>
      <bdi className="text-accent">{shortened(JSON.stringify(name))}</bdi>
      <span className="text-soft">: </span>
    </>
  );
}

/** Never cuts a character in two. */
function shortened(text: string, length = textMax): string {
  return text.length <= length ? text : `${text.slice(0, length).replace(/[\ud800-\udbff]$/, '')}…`;
}

function Scalar({ value }: { readonly value: unknown }) {
  const [shown, setShown] = useState(textMax);
  const text = JSON.stringify(value) ?? 'undefined';
  const tone = typeof value === 'string' ? 'text-good' : value === null ? 'text-soft' : 'text-warn';
  return (
    <>
      <bdi className={tone}>{shortened(text, shown)}</bdi>
      {text.length > shown ? (
        <button
          type="button"
          onClick={() => setShown(shown * 10)}
          className="ml-2 text-accent hover:underline"
        >
          show more of {text.length} characters
        </button>
      ) : null}
    </>
  );
}
