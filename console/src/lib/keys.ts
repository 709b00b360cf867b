// Keyboard shortcuts: single keys and two-key sequences, off while the user types.

import { useEffect, useRef } from 'react';

export type Shortcuts = Readonly<Record<string, (event: KeyboardEvent) => void>>;

const sequenceMs = 1_000;

/** Keys as in `KeyboardEvent.key`; `g e` is a sequence, `mod+k` is Ctrl or ⌘ with k. */
export function useShortcuts(shortcuts: Shortcuts): void {
  const current = useRef(shortcuts);
  current.current = shortcuts;
  useEffect(() => {
    let first = '';
    let firstAt = 0;
    const onKey = (event: KeyboardEvent): void => {
      if (event.defaultPrevented || event.altKey) return;
      const isCommand = event.ctrlKey || event.metaKey;
      if (!isCommand && isTyping(event.target)) return;
      const now = performance.now();
      const isSecond = !isCommand && first === 'g' && now - firstAt < sequenceMs;
      // The second key of a sequence has no other meaning: g k is not k, whichever view knows the sequence.
      const name = isCommand
        ? `mod+${event.key.toLowerCase()}`
        : `${isSecond ? 'g ' : ''}${event.key}`;
      const found = current.current[name];
      first = isCommand ? '' : event.key;
      firstAt = now;
      if (found === undefined) return;
      event.preventDefault();
      first = '';
      found(event);
    };
    globalThis.addEventListener('keydown', onKey);
    return () => globalThis.removeEventListener('keydown', onKey);
  }, []);
}

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable ||
      target.matches('input, textarea, select, [data-modal], [data-modal] *'))
  );
}

/** Moves the focus among rows that have no details: links, and rows with buttons. */
export function focusRow(by: number): void {
  const rows = [...document.querySelectorAll<HTMLElement>('[data-row]')];
  const at = rows.findIndex((row) => row === document.activeElement);
  rows[Math.max(0, Math.min(at + by, rows.length - 1))]?.focus();
}

/** False: the view has no filter. */
export function focusFilter(): boolean {
  const filter = document.querySelector<HTMLInputElement>('[data-filter]');
  filter?.focus();
  return filter !== null;
}
