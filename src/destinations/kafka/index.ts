export {
  deadLetterTopic,
  type DeadLetterTopic,
  type DeadLetterTopicOptions,
} from './dead-letter-topic.ts';
export {
  kafkaDestination,
  kafkaLimits,
  type KafkaDestination,
  type KafkaOptions,
} from './destination.ts';
export { classifyKafkaError, type KafkaErrorKind } from './error.ts';
export type { KafkaFormat } from './record.ts';
