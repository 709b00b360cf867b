// Buttons that copy what the page shows as a command.

import { Check, SquareTerminal } from 'lucide-react';
import type { ShellCommands } from '../lib/shell-commands.ts';
import { Button, useCopied } from './parts.tsx';

export function CopyAs({ commands }: { readonly commands: ShellCommands }) {
  return (
    <div className="flex items-center gap-1">
      <span aria-hidden className="hidden text-2xs text-soft sm:block">
        Copy as
      </span>
      <CopyCommand name="curl" text={commands.curl} />
      <CopyCommand name="CLI" text={commands.cli} />
    </div>
  );
}

function CopyCommand({ name, text }: { readonly name: string; readonly text: string }) {
  const { isDone, copy } = useCopied();
  const Icon = isDone ? Check : SquareTerminal;
  return (
    <Button
      look="quiet"
      title={text}
      aria-label={isDone ? 'Copied' : `Copy as ${name}`}
      className="px-2"
      onClick={() => copy(text)}
    >
      <Icon size={13} aria-hidden />
      {name}
    </Button>
  );
}
