import { rebalanceCases } from './rebalance-cases.ts';
import { openSqliteRig } from './open-sqlite-rig.ts';

rebalanceCases('sqlite', openSqliteRig);
