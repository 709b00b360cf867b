// Metadata that decorators attach to methods, and its discovery in the providers of an application.

import { Scope } from '@nestjs/common';
import type { DiscoveryService, MetadataScanner } from '@nestjs/core';
import type { EventDefinition } from '../contracts/define-event.ts';
import { MillraceError } from '../foundation/error.ts';
import { contextless, contextPrefix } from '../platform/modules/source-streams.ts';

export interface MarkedMethod<Mark> {
  readonly provider: object;
  /** `PaymentMailer.onCompleted` */
  readonly where: string;
  readonly className: string;
  readonly mark: Mark;
  readonly call: Method;
}

/** A decorator for `experimentalDecorators`; methods of another shape do not compile. */
export type MethodDecoratorOf<Shape> = <M extends Shape>(
  target: object,
  name: string | symbol,
  descriptor: TypedPropertyDescriptor<M>,
) => void;

type Method = (...given: readonly unknown[]) => unknown;

/** The settings of a decorator for the events of its method. */
export interface EventMark {
  /** An event type; for some decorators also a pattern. */
  readonly type: string;
  /** Undefined: the payload is passed as stored. */
  readonly parse: ((payload: unknown) => unknown) | undefined;
}

/** The prefix of the streams with the events of a method; a pattern may end with `*`. */
export function streamPrefixOf(
  { mark, where }: MarkedMethod<EventMark & { readonly category?: string | undefined }>,
  bc: string | undefined,
): string {
  if (mark.category !== undefined) return `${mark.category}-`;
  if (bc === undefined) throw contextless(where);
  return contextPrefix(bc, mark.type.replace(/\*$/, ''));
}

export function uniquePrefixes(
  all: readonly { readonly streamPrefix: string }[],
): readonly string[] {
  return [...new Set(all.map(({ streamPrefix }) => streamPrefix))].toSorted();
}

/** The decorator for a type or a definition of an event; only a definition checks the payload. */
export function eventDecorator<Shape>(
  key: symbol,
  event: string | Pick<EventDefinition<string, unknown, unknown>, 'parse' | 'type'>,
  options: object = {},
): MethodDecoratorOf<Shape> {
  const mark: EventMark =
    typeof event === 'string'
      ? { type: event, parse: undefined }
      : { type: event.type, parse: (payload) => event.parse(payload) };
  return (_target, _name, descriptor) => markMethod(key, { ...options, ...mark }, descriptor);
}

/** Attached to the function itself, like the metadata of Nest, which wrappers of methods copy. */
function markMethod(key: symbol, mark: object, descriptor: PropertyDescriptor): void {
  const method: unknown = descriptor.value;
  if (typeof method !== 'function') {
    throw new MillraceError('CONFIG_INVALID', 'this decorator can only be applied to a method');
  }
  Reflect.defineMetadata(key, [...marksOf(key, method), mark], method);
}

/** Finds marked methods in singleton providers and controllers. */
export function findMarkedMethods<Mark extends object>(
  key: symbol,
  { discovery, scanner }: { discovery: DiscoveryService; scanner: MetadataScanner },
): readonly MarkedMethod<Mark>[] {
  const seen = new Set<object>();
  const found: MarkedMethod<Mark>[] = [];
  for (const wrapper of [...discovery.getProviders(), ...discovery.getControllers()]) {
    const provider: unknown = wrapper.instance;
    if (typeof provider !== 'object' || provider === null || seen.has(provider)) continue;
    seen.add(provider);
    const prototype = Object.getPrototypeOf(provider) as Record<string, Method> | null;
    if (prototype === null) continue;
    for (const name of scanner.getAllMethodNames(prototype)) {
      const method = prototype[name];
      if (method === undefined) continue;
      for (const mark of marksOf(key, method)) {
        const className = provider.constructor.name;
        const where = `${className}.${name}`;
        if (!wrapper.isDependencyTreeStatic() || wrapper.scope === Scope.TRANSIENT) {
          throw new MillraceError(
            'CONFIG_INVALID',
            `${where} handles events outside of requests: its class must have the default scope`,
            { details: { where } },
          );
        }
        found.push({
          provider,
          where,
          className,
          mark: mark as Mark,
          // Resolved at each call, because tests and tracers replace methods.
          call: (...given) => (provider as Record<string, Method>)[name]?.(...given),
        });
      }
    }
  }
  return found;
}

function marksOf(key: symbol, method: object): readonly object[] {
  return (Reflect.getMetadata(key, method) as readonly object[] | undefined) ?? [];
}
