import { filesContract } from '../contract/files.contract.ts';
import { openServiceDrive } from '../support/service-drive.ts';

filesContract('the tree over the embedded service', () => openServiceDrive());
