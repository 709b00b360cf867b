// How far a group has got: everything up to `upTo` is done with, whatever order it was done in. Pure.

export interface Ledger {
  /** The highest number below which nothing is open. */
  readonly upTo: number;
  /** How many became part of `upTo` so far. */
  readonly completed: number;
  /** Numbers grow; the slot is how to say later that it is done. */
  open(at: number): Slot;
  done(slot: Slot): void;
}

export interface Slot {
  readonly at: number;
  isDone: boolean;
}

/** Slots behind the head are let go once there are so many. */
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
