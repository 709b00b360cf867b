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
} from './kafka-destination.ts';
export { classifyKafkaError, type KafkaErrorKind } from './kafka-error.ts';
export type { KafkaFormat } from './kafka-record.ts';
