import { Body, Controller, Get, Header, Param, Post, Query } from '@nestjs/common';
import { MillraceHealthIndicator, MillraceMetrics, type MillraceHealth } from 'millrace/nest';
import type { EnqueueOutboxProps } from 'millrace/outbox';
import { OutboxDispatcherService } from './application/outbox-dispatcher.service.ts';
import { OutboxRepository } from './domain/outbox.repository.ts';
import type { IntegrationOutboxEntity } from './infrastructure/entities/integration-outbox.entity.ts';

@Controller()
export class IntegrationOutboxController {
  constructor(
    private readonly outbox: OutboxRepository,
    private readonly dispatcher: OutboxDispatcherService,
    private readonly metrics: MillraceMetrics,
    private readonly health: MillraceHealthIndicator,
  ) {}

  @Post('outbox')
  enqueue(@Body() item: EnqueueOutboxProps): Promise<IntegrationOutboxEntity> {
    return this.outbox.enqueue(item);
  }

  @Get('outbox/:id/attempts')
  attempts(@Param('id') id: string): Promise<number> {
    return this.outbox.getAttempts(id);
  }

  @Post('tick')
  tick(@Query('limit') limit: string): Promise<number> {
    return this.dispatcher.tick(Number(limit));
  }

  @Get('metrics')
  @Header('content-type', MillraceMetrics.contentType)
  readMetrics(): Promise<string> {
    return this.metrics.read();
  }

  @Get('health')
  readHealth(): Promise<MillraceHealth> {
    return this.health.check();
  }
}
