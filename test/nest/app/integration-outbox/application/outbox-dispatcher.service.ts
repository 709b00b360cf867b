import { Inject, Injectable } from '@nestjs/common';
import { OUTBOX_DISPATCHER } from 'millrace/nest';
import type { QueueDispatcher } from 'millrace/outbox';

@Injectable()
export class OutboxDispatcherService {
  constructor(@Inject(OUTBOX_DISPATCHER) private readonly dispatcher: QueueDispatcher) {}

  /** For a cron job; the module also runs the dispatcher itself. */
  tick(limit = 100): Promise<number> {
    return this.dispatcher.tick(limit);
  }
}
