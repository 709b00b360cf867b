// A flow, or one of its nodes, as sentences with links.

import { Link } from '@tanstack/react-router';
import { ArrowDownRight, CornerLeftUp, Hourglass, Undo2, type LucideIcon } from 'lucide-react';
import { useMemo, useState } from 'react';
import { explain, type Part as TextPart, type Sentence } from '../lib/explain.ts';
import type { Trace, TraceRow } from '../lib/trace-rows.ts';
import { Badge, breakable, Button, cx, linkStyle, StreamLink, Time } from '../ui/parts.tsx';

const shownMax = 60;

export function TraceExplain({
  trace,
  row,
  onSelect,
}: {
  readonly trace: Trace;
  /** Undefined: the whole flow is explained. */
  readonly row: TraceRow | undefined;
  readonly onSelect: (node: string | undefined) => void;
}) {
  const { causes, followed, waits } = useMemo(
    () => explain(trace, row?.node.id),
    [trace, row?.node.id],
  );
  return (
    <div className="flex flex-col gap-4">
      {row === undefined ? null : (
        <div className="flex flex-wrap items-center gap-2 rounded-lg border border-line bg-panel px-4 py-2.5 text-xs">
          <span className="text-soft">About</span>
          <span className="mono min-w-0 font-medium break-all">{row.title}</span>
          <Badge>{row.about}</Badge>
          <Button className="ml-auto" onClick={() => onSelect(undefined)}>
            <Undo2 size={13} aria-hidden />
            The whole flow
          </Button>
        </div>
      )}
      <div className="grid items-start gap-4 lg:grid-cols-2">
        <div className="flex flex-col gap-4">
          <Sentences
            title={row === undefined ? 'What started it' : 'What caused this'}
            icon={CornerLeftUp}
            sentences={causes}
            none="The cause is not recorded."
            onSelect={onSelect}
          />
          <Sentences
            title="What waits, and until when"
            icon={Hourglass}
            sentences={waits}
            none="Nothing waits: everything below is done."
            onSelect={onSelect}
          />
        </div>
        <Sentences
          title="What followed"
          icon={ArrowDownRight}
          sentences={followed}
          none="Nothing followed."
          onSelect={onSelect}
        />
      </div>
    </div>
  );
}

const dots = { bad: 'bg-bad', good: 'bg-good', neutral: 'bg-strong', warn: 'bg-warn' } as const;
const toneNames = { bad: 'failed', good: 'done', neutral: '', warn: 'waiting' } as const;

function Sentences({
  title,
  icon: Icon,
  sentences,
  none,
  onSelect,
}: {
  readonly title: string;
  readonly icon: LucideIcon;
  readonly sentences: readonly Sentence[];
  readonly none: string;
  readonly onSelect: (node: string) => void;
}) {
  const [shown, setShown] = useState(shownMax);
  return (
    <section className="overflow-hidden rounded-lg border border-line bg-panel">
      <header className="flex h-10 items-center gap-2 border-b border-line px-4">
        <Icon size={14} aria-hidden className="text-soft" />
        <h2 className="text-xs font-semibold">{title}</h2>
        {sentences.length > 1 ? (
          <span className="ml-auto text-2xs text-soft">{sentences.length}</span>
        ) : null}
      </header>
      {sentences.length === 0 ? (
        <p className="px-4 py-3 text-xs text-soft">{none}</p>
      ) : (
        <ol className="divide-y divide-line text-xs leading-5">
          {sentences.slice(0, shown).map((sentence, at) => (
            <li key={at} className="flex gap-3 px-4 py-2.5">
              <span
                role="img"
                aria-label={toneNames[sentence.tone]}
                aria-hidden={toneNames[sentence.tone] === ''}
                className={cx('mt-1.5 size-2 shrink-0 rounded-full', dots[sentence.tone])}
              />
              <p className="min-w-0 break-words [&_a]:underline [&_button]:underline">
                {sentence.parts.map((part, index) => (
                  <SentencePart key={index} part={part} onSelect={onSelect} />
                ))}
              </p>
            </li>
          ))}
        </ol>
      )}
      {sentences.length > shown ? (
        <Button
          look="quiet"
          className="w-full border-t border-line"
          onClick={() => setShown(shown + 10 * shownMax)}
        >
          Show more of {sentences.length - shown}
        </Button>
      ) : null}
    </section>
  );
}

const partStyle = cx('mono wrap-anywhere', linkStyle);

function SentencePart({
  part,
  onSelect,
}: {
  readonly part: TextPart;
  readonly onSelect: (node: string) => void;
}) {
  if (typeof part === 'string') return <bdi>{part}</bdi>;
  if ('at' in part) return <Time at={part.at} />;
  if ('stream' in part) {
    return <StreamLink stream={part.stream}>{breakable(part.text)}</StreamLink>;
  }
  if ('job' in part) {
    return (
      <Link to="/jobs" search={{ open: part.job }} className={linkStyle}>
        {part.text}
      </Link>
    );
  }
  if ('delivery' in part) {
    return (
      <Link to="/deliveries" search={{ open: part.delivery }} className={linkStyle}>
        {part.text}
      </Link>
    );
  }
  return (
    <button
      type="button"
      onClick={() => onSelect(part.node)}
      className={cx('text-left', partStyle)}
    >
      {breakable(part.text)}
    </button>
  );
}
