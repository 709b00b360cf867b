// Topics within one process: a message goes to all listeners of its topic.

export interface Topics<Message> {
  /** A listener may join many topics; it must not throw. The returned function leaves the topic. */
  join(topic: string, listen: (message: Message) => void): () => void;
  publish(topic: string, message: Message): void;
  /** Topics with listeners. */
  readonly size: number;
}

/**
 * Topics buffer nothing: a listener that forwards messages to a `SocketClient` is bounded by that client's limit of
 * unread data.
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
        // A topic that became empty and was joined again is a new object.
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
