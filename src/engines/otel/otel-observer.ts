// Creates an OpenTelemetry span for each span of Millrace. Any SDK that is set up in the process receives them.

import {
  context,
  createTraceState,
  isSpanContextValid,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
  type Span as OtelSpan,
  type SpanContext,
  type Tracer,
} from '@opentelemetry/api';
import type { Observer, Span, TraceContext } from '../../foundation/observer.ts';
import { toAttributes, toConventions } from './span-conventions.ts';

const kinds = {
  internal: SpanKind.INTERNAL,
  server: SpanKind.SERVER,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER,
} as const;

/**
 * An observer that creates OpenTelemetry spans. Default tracer: that of the SDK that is set up in the process.
 *
 * @example
 * import { otelObserver } from 'millrace/engines/otel';
 * import { createPlatform } from 'millrace/platform';
 *
 * await using platform = await createPlatform({ observer: otelObserver() });
 */
export function otelObserver(
  options: { readonly tracer?: Tracer } = {},
): Required<Pick<Observer, 'span'>> {
  const { tracer = trace.getTracer('millrace') } = options;
  return {
    span(name, given, parent, links = []) {
      const { name: shown, kind, attributes } = toConventions(name, given);
      const remote = parent === undefined ? undefined : toSpanContext(parent);
      // Without a given parent, the span is a child of the application's active span.
      const above =
        remote === undefined ? context.active() : trace.setSpanContext(ROOT_CONTEXT, remote);
      return toSpan(
        tracer.startSpan(
          shown,
          {
            kind: kinds[kind],
            attributes,
            links: links
              .map(toSpanContext)
              .filter((each) => each !== undefined)
              .map((each) => ({ context: each })),
          },
          above,
        ),
      );
    },
  };
}

function toSpan(span: OtelSpan): Span {
  const own = span.spanContext();
  return {
    context: isSpanContextValid(own) ? toTraceContext(own) : undefined,
    set: (attributes) => void span.setAttributes(toAttributes(attributes)),
    fail(error) {
      const known = error instanceof Error ? error : new Error(String(error));
      const code = 'code' in known && typeof known.code === 'string' ? known.code : known.name;
      span.setAttribute('error.type', code);
      span.recordException(known);
      span.setStatus({ code: SpanStatusCode.ERROR, message: known.message });
    },
    end: () => span.end(),
  };
}

const traceparentPattern = /^[\da-f]{2}-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(?:-.*)?$/;

/** Returns undefined for an invalid W3C trace context, which is then ignored. */
function toSpanContext({ traceparent, tracestate }: TraceContext): SpanContext | undefined {
  const [, traceId = '', spanId = '', flags = ''] = traceparentPattern.exec(traceparent) ?? [];
  const found: SpanContext = {
    traceId,
    spanId,
    traceFlags: Number.parseInt(flags, 16) & 1,
    isRemote: true,
    ...(tracestate === undefined ? {} : { traceState: createTraceState(tracestate) }),
  };
  return isSpanContextValid(found) ? found : undefined;
}

function toTraceContext({ traceId, spanId, traceFlags, traceState }: SpanContext): TraceContext {
  const flags = traceFlags.toString(16).padStart(2, '0');
  const tracestate = traceState?.serialize() ?? '';
  return {
    traceparent: `00-${traceId}-${spanId}-${flags}`,
    ...(tracestate === '' ? {} : { tracestate }),
  };
}
