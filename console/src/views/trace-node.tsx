// One node of a flow: its state, its error and its fields.

import { Link } from '@tanstack/react-router';
import { ListTree } from 'lucide-react';
import { durationText } from '../lib/format.ts';
import { kindNames, type TraceRow } from '../lib/trace-rows.ts';
import {
  Badge,
  Button,
  CopyButton,
  Fact,
  Facts,
  linkStyle,
  StreamLink,
  Time,
} from '../ui/parts.tsx';
import { Sheet } from '../ui/sheet.tsx';

export const stateTones = { done: 'good', failed: 'bad', waiting: 'warn' } as const;

export function NodeSheet({
  row,
  onExplain,
  onClose,
}: {
  readonly row: TraceRow | undefined;
  readonly onExplain: () => void;
  readonly onClose: () => void;
}) {
  return (
    <Sheet
      isOpen={row !== undefined}
      onClose={onClose}
      title={<span className="mono">{row?.title ?? ''}</span>}
    >
      {row === undefined ? null : <NodeDetail row={row} onExplain={onExplain} />}
    </Sheet>
  );
}

function NodeDetail({
  row: { node, state, about },
  onExplain,
}: {
  readonly row: TraceRow;
  readonly onExplain: () => void;
}) {
  const error = 'error' in node ? node.error : null;
  const { kind, id, parent: _parent, depth: _depth, offsetMs, ...rest } = node;
  const facts = Object.entries(rest).filter(
    ([name, value]) =>
      value !== null && value !== '' && !['error', 'stream', 'timers'].includes(name),
  );
  return (
    <div className="flex flex-col gap-4">
      <div className="flex items-center gap-2">
        <Badge>{kindNames[kind]}</Badge>
        <Badge tone={stateTones[state]}>{about}</Badge>
        {offsetMs === null ? null : (
          <span className="text-xs text-soft">+{durationText(offsetMs)}</span>
        )}
        <Button className="ml-auto" onClick={onExplain}>
          <ListTree size={14} aria-hidden />
          Explain
        </Button>
      </div>
      {error === null ? null : (
        <pre className="mono rounded-md bg-bad-wash p-3 text-xs break-words whitespace-pre-wrap text-bad">
          {error}
        </pre>
      )}
      <Facts>
        {'stream' in node ? (
          <Fact name="Stream">
            <StreamLink stream={node.stream} />
          </Fact>
        ) : null}
        {node.kind === 'task' ? (
          <Fact name="Details">
            <Link to="/jobs" search={{ open: node.task }} className={linkStyle}>
              the job and its steps
            </Link>
          </Fact>
        ) : null}
        {node.kind === 'delivery' ? (
          <Fact name="Details">
            <Link to="/deliveries" search={{ open: node.message }} className={linkStyle}>
              the message and its attempts
            </Link>
          </Fact>
        ) : null}
        {node.kind === 'saga'
          ? node.timers.map(({ timer, dueAt }) => (
              <Fact key={timer} name="Timer">
                <span className="mono">{timer}</span> due <Time at={dueAt} />
              </Fact>
            ))
          : null}
        {facts.map(([name, value]) => (
          <Fact key={name} name={nameOf(name)}>
            {/(?:At|^at)$/.test(name) ? (
              <Time at={String(value)} />
            ) : (
              <span className="mono break-all">{String(value)}</span>
            )}
          </Fact>
        ))}
        <Fact name="Node">
          <span className="mono break-all text-soft">{id}</span>
          <CopyButton text={id} label="Copy the id of the node" />
        </Fact>
      </Facts>
    </div>
  );
}

/** `attemptsMax` → `Attempts max`. */
function nameOf(field: string): string {
  const words = field.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  return words.slice(0, 1).toUpperCase() + words.slice(1);
}
