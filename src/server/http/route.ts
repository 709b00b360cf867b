// Routes are defined one layer below, so that modules may bring some.

export {
  route,
  type Answer,
  type AnswerInfo,
  type ApiRequest,
  type ErrorShape,
  type JsonAnswer,
  type Method,
  type Route,
  type StreamAnswer,
} from '../../platform/route.ts';
