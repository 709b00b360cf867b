// The progress of a group: `upTo` is the number up to which everything is done, in any order of completion. Pure.

export interface Ledger {
  /** The highest number up to which no slot is open. */
  readonly upTo: number;
  /** The number of slots up to `upTo`. */
  readonly completed: number;
  /** Opens a slot for a number higher than all before. */
  open(at: number): Slot;
  done(slot: Slot): void;
}

export interface Slot {
  readonly at: number;
  isDone: boolean;
}

/** The number of done slots at which the array is trimmed. */
const compactAt = 1_024;

export function createLedger(start: number): Ledger {
  let slots: Slot[] = [];
  let head = 0;
  let upTo = start;
  let completed = 0;
  return {
    get upTo() {
      return upTo;
    },
    get completed() {
      return completed;
    },
    open(at) {
      const slot: Slot = { at, isDone: false };
      slots.push(slot);
      return slot;
    },
    done(slot) {
      slot.isDone = true;
      for (let next = slots[head]; next?.isDone === true; next = slots[head]) {
        upTo = next.at;
        completed += 1;
        head += 1;
      }
      if (head < compactAt) return;
      slots = slots.slice(head);
      head = 0;
    },
  };
}
