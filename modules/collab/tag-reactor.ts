// From a message to its tags: once for each message, by the grammar of that day.

import { reactor } from 'millrace/reactors';
import { messagePosted, recordTags } from './chat-events.ts';
import { botId } from './fields.ts';
import { onBehalfOf } from './on-behalf-of.ts';
import { parseTags, tagParserVersion } from './tag-parser.ts';

export const tagReactor = reactor({
  name: 'sub:collab:tag-parser:v1',
  from: 'start',
  events: [messagePosted],
  onRefused: 'dead-letter',
  // A message whose tags were not read must not be overtaken by the next one of its chat.
  onDeadLetter: 'park',
  on: {
    'chat.message-posted.v1': ({ payload, aggregate, user }) => {
      const { messageId, authorId, content } = payload;
      if (authorId === botId) return undefined;
      const { commands, text, leftOut } = parseTags(content);
      if (commands.length === 0) return undefined;
      const tags = { messageId, authorId, parserVersion: tagParserVersion, text, leftOut };
      const command = recordTags({ ...tags, commands: [...commands] });
      return { id: aggregate.id, command, ...onBehalfOf(user) };
    },
  },
});
