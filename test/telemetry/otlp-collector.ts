// A fake OpenTelemetry collector: accepts OTLP over HTTP as JSON and keeps the spans.

import { startHttpReceiver } from '../../src/testing/index.ts';

export interface CollectedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
  readonly name: string;
  readonly kind: number;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[];
  readonly status: { readonly code?: number | undefined; readonly message?: string | undefined };
}

export interface OtlpCollector extends AsyncDisposable {
  readonly url: string;
  spans(): readonly CollectedSpan[];
  /** The resource attributes of all exports. */
  resource(): Readonly<Record<string, unknown>>;
}

interface OtlpValue {
  readonly stringValue?: string | undefined;
  readonly intValue?: number | string | undefined;
  readonly doubleValue?: number | undefined;
  readonly boolValue?: boolean | undefined;
}

interface OtlpAttribute {
  readonly key: string;
  readonly value: OtlpValue;
}

interface OtlpSpan extends Omit<CollectedSpan, 'attributes' | 'links'> {
  readonly attributes?: readonly OtlpAttribute[] | undefined;
  readonly links?: CollectedSpan['links'] | undefined;
}

interface OtlpTraces {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly OtlpAttribute[] };
    readonly scopeSpans: readonly { readonly spans: readonly OtlpSpan[] }[];
  }[];
}

export async function startOtlpCollector(): Promise<OtlpCollector> {
  const receiver = await startHttpReceiver({
    answer: ({ path, headers }, response) => {
      const isOtlp = path === '/v1/traces' && headers['content-type'] === 'application/json';
      response.writeHead(isOtlp ? 200 : 400, { 'content-type': 'application/json' }).end('{}');
    },
  });
  const groups = (): OtlpTraces['resourceSpans'] =>
    receiver.requests.flatMap(({ body }) => (JSON.parse(body) as OtlpTraces).resourceSpans);
  return {
    url: receiver.url,
    spans: () =>
      groups()
        .flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans))
        .map(({ attributes = [], links = [], ...span }) => ({
          ...span,
          links,
          attributes: toRecord(attributes),
        })),
    resource: () =>
      Object.assign({}, ...groups().map(({ resource }) => toRecord(resource.attributes))),
    [Symbol.asyncDispose]: () => receiver[Symbol.asyncDispose](),
  };
}

function toRecord(attributes: readonly OtlpAttribute[]): Record<string, unknown> {
  return Object.fromEntries(
    attributes.map(({ key, value }) => [
      key,
      value.stringValue ?? value.intValue ?? value.doubleValue ?? value.boolValue,
    ]),
  );
}
