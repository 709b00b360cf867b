import { Body, ConflictException, Controller, Get, Post, Query } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { OutboxRepository } from 'millrace/nest';
import { IntegrationOutboxEntity, OutboxStatus } from 'millrace/nest/typeorm';
import { Column, DataSource, Entity, PrimaryColumn, Repository } from 'typeorm';

@Entity({ name: 'orders' })
export class OrderEntity {
  @PrimaryColumn({ type: 'varchar' }) id!: string;
  @Column({ type: 'boolean' }) paid!: boolean;
}

@Controller('orders')
export class OrdersController {
  constructor(
    private readonly dataSource: DataSource,
    private readonly outbox: OutboxRepository,
    @InjectRepository(IntegrationOutboxEntity)
    private readonly messages: Repository<IntegrationOutboxEntity>,
  ) {}

  @Post()
  async pay(@Body() order: { readonly id: string; readonly isDeclined?: boolean }): Promise<void> {
    await this.dataSource.transaction(async (manager) => {
      await manager.insert(OrderEntity, { id: order.id, paid: true });
      await this.outbox.enqueueIn(manager, [
        {
          sourceStreamId: `orders-${order.id}`,
          sourceEventId: `${order.id}-paid`,
          integrationType: 'webhook:warehouse',
          eventType: 'order.paid.v1',
          payload: { orderId: order.id },
        },
      ]);
      if (order.isDeclined === true) throw new ConflictException('the card was declined');
    });
  }

  @Get('sent')
  sent(@Query('stream') sourceStreamId: string): Promise<number> {
    return this.messages.countBy({ sourceStreamId, status: OutboxStatus.SENT });
  }

  @Get()
  all(): Promise<number> {
    return this.dataSource.getRepository(OrderEntity).count();
  }
}
