// The rules of a sample item, without side effects: decide returns events, evolve applies them.

import { defineCommand, type CommandOf } from 'millrace/contracts';
import {
  sampleItemCreated,
  sampleItemDetails,
  sampleItemUpdated,
  type SampleItemEvent,
} from './sample-item-events.ts';

export const createSampleItem = defineCommand('sample-item.create', sampleItemDetails);
export const updateSampleItem = defineCommand('sample-item.update', sampleItemDetails);

export type SampleItemCommand =
  | CommandOf<typeof createSampleItem>
  | CommandOf<typeof updateSampleItem>;

export type SampleItemState =
  | { readonly exists: false }
  | { readonly exists: true; readonly name: string };

export const noSampleItem: SampleItemState = { exists: false };

/** Returns the events of a command, none if it changes nothing; throws if it is not allowed. */
export function decideSampleItem(
  command: SampleItemCommand,
  state: SampleItemState,
): readonly SampleItemEvent[] {
  switch (command.type) {
    case 'sample-item.create':
      if (state.exists) throw new Error('the sample item already exists');
      return [sampleItemCreated(command.payload)];
    case 'sample-item.update':
      if (!state.exists) throw new Error('unknown sample item');
      return state.name === command.payload.name ? [] : [sampleItemUpdated(command.payload)];
  }
}

export function evolveSampleItem(_state: SampleItemState, event: SampleItemEvent): SampleItemState {
  switch (event.type) {
    case 'sample-item.created.v1':
    case 'sample-item.updated.v1':
      return { exists: true, name: event.payload.name };
  }
}
