// Who wants to hear of what, inside one process: a message goes to all that joined its topic.

export interface Topics<Message> {
  /** The same listener may be in many topics; it must not throw. What is given back leaves, once. */
  join(topic: string, listen: (message: Message) => void): () => void;
  publish(topic: string, message: Message): void;
  /** Topics that somebody is in. */
  readonly size: number;
}

/**
 * Topics hold nothing back: a listener that passes messages on to a `SocketClient` is bounded by what that
 * one may leave unread.
 *
 * @example
 * import { createTopics } from 'millrace/platform';
 *
 * const topics = createTopics<string>();
 * const leave = topics.join('room:1', (message) => console.log(message));
 * topics.publish('room:1', 'hello');
 * leave();
 */
export function createTopics<Message>(): Topics<Message> {
  const topics = new Map<string, Set<{ readonly listen: (message: Message) => void }>>();
  return {
    join(topic, listen) {
      const members = topics.get(topic) ?? new Set();
      topics.set(topic, members);
      const member = { listen };
      members.add(member);
      return () => {
        // A topic that was left by all and joined anew is another one.
        if (members.delete(member) && members.size === 0) topics.delete(topic);
      };
    },
    publish(topic, message) {
      for (const { listen } of topics.get(topic) ?? []) listen(message);
    },
    get size() {
      return topics.size;
    },
  };
}
