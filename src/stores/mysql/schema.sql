-- Read from a database after its migrations, by `npm run schemas`; do not edit.

CREATE TABLE `escapement_adoptions` (
  `ns` int(11) NOT NULL,
  `child` bigint(20) NOT NULL,
  PRIMARY KEY (`ns`,`child`)
) ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci;

CREATE TABLE `escapement_aliases` (
  `job` bigint(20) NOT NULL,
  `alias` bigint(20) NOT NULL,
  PRIMARY KEY (`job`,`alias`)
) ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci;

CREATE TABLE `escapement_audit` (
  `entry` bigint(20) NOT NULL AUTO_INCREMENT,
  `ns` int(11) NOT NULL,
  `at` bigint(20) NOT NULL,
  `id` varbinary(1024) NOT NULL,
  `actor` varbinary(400) NOT NULL,
  `action` varbinary(400) NOT NULL,
  `target` longtext NOT NULL,
  `reason` longtext DEFAULT NULL,
  `outcome` longtext DEFAULT NULL,
  PRIMARY KEY (`entry`),
  UNIQUE KEY `escapement_audit_id` (`ns`,`id`),
  KEY `escapement_audit_at` (`ns`,`at`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE `escapement_claimers` (
  `claimer` int(11) NOT NULL AUTO_INCREMENT,
  `ns` int(11) NOT NULL,
  `name` varbinary(1024) NOT NULL,
  `sequence` bigint(20) NOT NULL,
  `seen_at` bigint(20) NOT NULL,
  PRIMARY KEY (`claimer`),
  UNIQUE KEY `escapement_claimers_name` (`ns`,`name`)
) ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci ROW_FORMAT=DYNAMIC;

CREATE TABLE `escapement_counts` (
  `ns` int(11) NOT NULL,
  `kind` enum('all','succeeded','dead','lost','cancelled') NOT NULL,
  `queue` varbinary(400) NOT NULL,
  `name` varbinary(400) NOT NULL,
  `jobs` bigint(20) NOT NULL,
  `last_seq` bigint(20) NOT NULL DEFAULT 0,
  PRIMARY KEY (`ns`,`kind`,`queue`,`name`)
) ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci ROW_FORMAT=DYNAMIC;

CREATE TABLE `escapement_count_changes` (
  `entry` bigint(20) NOT NULL AUTO_INCREMENT,
  `ns` int(11) NOT NULL,
  `kind` enum('all','succeeded','dead','lost','cancelled') NOT NULL,
  `jobs` bigint(20) NOT NULL,
  `last_seq` bigint(20) NOT NULL DEFAULT 0,
  `queue` varbinary(400) NOT NULL,
  `name` varbinary(400) NOT NULL,
  PRIMARY KEY (`entry`)
) ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci ROW_FORMAT=DYNAMIC;

CREATE TABLE `escapement_debounce_keys` (
  `ns` int(11) NOT NULL,
  `debounce_key` varbinary(1940) NOT NULL,
  `job` bigint(20) NOT NULL,
  PRIMARY KEY (`ns`,`debounce_key`,`job`),
  KEY `escapement_debounce_keys_job` (`job`)
) ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci ROW_FORMAT=DYNAMIC;

CREATE TABLE `escapement_expiring` (
  `ns` int(11) NOT NULL,
  `expire_at` bigint(20) NOT NULL,
  `job` bigint(20) NOT NULL,
  PRIMARY KEY (`ns`,`expire_at`,`job`)
) ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci;

CREATE TABLE `escapement_gates` (
  `ns` int(11) NOT NULL,
  `lane` varbinary(1960) NOT NULL,
  `queue` varbinary(400) NOT NULL,
  `name` varbinary(400) NOT NULL,
  `ready_at` bigint(20) DEFAULT NULL,
  `concurrency_limit` bigint(20) DEFAULT NULL,
  PRIMARY KEY (`ns`,`lane`,`queue`,`name`),
  KEY `escapement_gates_ready` (`ns`,`queue`,`name`,`ready_at`),
  CONSTRAINT `CONSTRAINT_1` CHECK (`ready_at` between -9007199254740991 and 9007199254740991)
) ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci ROW_FORMAT=DYNAMIC;

CREATE TABLE `escapement_hints` (
  `hint` bigint(20) NOT NULL AUTO_INCREMENT,
  `ns` int(11) NOT NULL,
  `kind` enum('arrived','freed','changed') NOT NULL,
  `lane` varbinary(1960) NOT NULL,
  `queue` varbinary(400) NOT NULL DEFAULT '',
  `name` varbinary(400) NOT NULL DEFAULT '',
  `at` bigint(20) NOT NULL DEFAULT 0,
  PRIMARY KEY (`hint`),
  KEY `escapement_hints_ns` (`ns`)
) ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci ROW_FORMAT=DYNAMIC;

CREATE TABLE `escapement_history` (
  `ns` int(11) NOT NULL,
  `series` varbinary(16) NOT NULL,
  `at` bigint(20) NOT NULL,
  `queue` varbinary(400) NOT NULL,
  `name` varbinary(400) NOT NULL,
  `succeeded` bigint(20) NOT NULL,
  `failed` bigint(20) NOT NULL,
  `crashed` bigint(20) NOT NULL,
  `dead` bigint(20) NOT NULL,
  `lost` bigint(20) NOT NULL,
  `cancelled` bigint(20) NOT NULL,
  `existing` bigint(20) NOT NULL,
  `absorbed` bigint(20) NOT NULL,
  `stale` bigint(20) NOT NULL,
  `naming_retries` bigint(20) NOT NULL,
  `publish_retries` bigint(20) NOT NULL,
  `rollback_retries` bigint(20) NOT NULL,
  `runs` bigint(20) NOT NULL,
  `run_sum_ms` bigint(20) NOT NULL,
  `late_sum_ms` bigint(20) NOT NULL,
  `late_0` bigint(20) NOT NULL,
  `late_1` bigint(20) NOT NULL,
  `late_2` bigint(20) NOT NULL,
  `late_3` bigint(20) NOT NULL,
  `late_4` bigint(20) NOT NULL,
  `late_5` bigint(20) NOT NULL,
  `late_6` bigint(20) NOT NULL,
  `run_max_ms` bigint(20) NOT NULL,
  `late_max_ms` bigint(20) NOT NULL,
  `due_max` bigint(20) NOT NULL,
  PRIMARY KEY (`ns`,`series`,`at`,`queue`,`name`),
  CONSTRAINT `CONSTRAINT_1` CHECK (`succeeded` between 0 and 9007199254740991 and `failed` between 0 and 9007199254740991 and `crashed` between 0 and 9007199254740991 and `dead` between 0 and 9007199254740991 and `lost` between 0 and 9007199254740991 and `cancelled` between 0 and 9007199254740991 and `existing` between 0 and 9007199254740991 and `absorbed` between 0 and 9007199254740991 and `stale` between 0 and 9007199254740991 and `naming_retries` between 0 and 9007199254740991 and `publish_retries` between 0 and 9007199254740991 and `rollback_retries` between 0 and 9007199254740991 and `runs` between 0 and 9007199254740991 and `run_sum_ms` between 0 and 9007199254740991 and `late_sum_ms` between 0 and 9007199254740991 and `late_0` between 0 and 9007199254740991 and `late_1` between 0 and 9007199254740991 and `late_2` between 0 and 9007199254740991 and `late_3` between 0 and 9007199254740991 and `late_4` between 0 and 9007199254740991 and `late_5` between 0 and 9007199254740991 and `late_6` between 0 and 9007199254740991 and `run_max_ms` between 0 and 9007199254740991 and `late_max_ms` between 0 and 9007199254740991 and `due_max` between 0 and 9007199254740991 and `at` between -9007199254740991 and 9007199254740991)
) ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci ROW_FORMAT=DYNAMIC;

CREATE TABLE `escapement_history_writers` (
  `ns` int(11) NOT NULL,
  `node` varbinary(1024) NOT NULL,
  `sequence` bigint(20) NOT NULL,
  `seen_at` bigint(20) NOT NULL,
  PRIMARY KEY (`ns`,`node`)
) ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci ROW_FORMAT=DYNAMIC;

CREATE TABLE `escapement_jobs` (
  `seq` bigint(20) NOT NULL AUTO_INCREMENT,
  `ns` int(11) NOT NULL,
  `id` varbinary(1024) NOT NULL,
  `state` enum('blocked','waiting','active','succeeded','dead','lost','cancelled','alias') NOT NULL,
  `line` int(11) NOT NULL,
  `urgency` int(11) NOT NULL DEFAULT 0,
  `at` bigint(20) NOT NULL,
  `born` bigint(20) NOT NULL,
  `run_at` bigint(20) NOT NULL,
  `fire_at` bigint(20) NOT NULL,
  `enqueued_at` bigint(20) NOT NULL,
  `claimed_at` bigint(20) NOT NULL DEFAULT 0,
  `claim_sequence` bigint(20) NOT NULL DEFAULT 0,
  `claimer` int(11) NOT NULL DEFAULT 0,
  `token` int(11) NOT NULL DEFAULT 0,
  `settled` int(11) NOT NULL DEFAULT 0,
  `settled_by` int(11) NOT NULL DEFAULT 0,
  `attempt` int(11) NOT NULL DEFAULT 0,
  `crashes` int(11) NOT NULL DEFAULT 0,
  `redrives` int(11) NOT NULL DEFAULT 0,
  `rollbacks` int(11) NOT NULL DEFAULT 0,
  `version` int(11) NOT NULL DEFAULT 1,
  `cancel_requested` tinyint(4) NOT NULL DEFAULT 0,
  `ahead` tinyint(4) NOT NULL DEFAULT 0,
  `relayed` tinyint(4) NOT NULL DEFAULT 0,
  `priority` int(11) NOT NULL,
  `attempts` int(11) NOT NULL,
  `max_crashes` int(11) NOT NULL,
  `slot` int(11) NOT NULL,
  `delivery` enum('at-most-once','at-least-once','effectively-once') NOT NULL,
  `after_failure` enum('cancel','run') NOT NULL DEFAULT 'cancel',
  `name` varbinary(400) NOT NULL,
  `queue` varbinary(400) NOT NULL,
  `expire_at` bigint(20) DEFAULT NULL,
  `stands_for` bigint(20) DEFAULT NULL,
  `concurrency_key` varbinary(1940) DEFAULT NULL,
  `rate_key` varbinary(1940) DEFAULT NULL,
  `unique_key` varbinary(1940) DEFAULT NULL,
  `unique_ms` bigint(20) DEFAULT NULL,
  `schedule` varbinary(400) DEFAULT NULL,
  `kept_succeeded` int(11) DEFAULT NULL,
  `kept_cancelled` int(11) DEFAULT NULL,
  `kept_dead` int(11) DEFAULT NULL,
  `kept_lost` int(11) DEFAULT NULL,
  `tags` longtext DEFAULT NULL,
  `reason` longtext DEFAULT NULL,
  `error` longtext DEFAULT NULL,
  `progress` longtext DEFAULT NULL,
  `result` longtext DEFAULT NULL,
  `input` longtext NOT NULL,
  PRIMARY KEY (`seq`),
  UNIQUE KEY `escapement_jobs_id` (`ns`,`id`),
  KEY `escapement_jobs_line` (`line`,`urgency`,`at`),
  CONSTRAINT `CONSTRAINT_1` CHECK (`attempt` between 0 and 1000000000 and `token` between 0 and 1000000000 and `settled` between 0 and 1000000000 and `crashes` between 0 and 1000000000 and `redrives` between 0 and 1000000000 and `rollbacks` between 0 and 1000000000 and `version` between 0 and 1000000000 and `priority` between -2147483647 and 2147483647 and `run_at` between -9007199254740991 and 9007199254740991 and `fire_at` between -9007199254740991 and 9007199254740991 and `enqueued_at` between -9007199254740991 and 9007199254740991 and `claimed_at` between -9007199254740991 and 9007199254740991 and `expire_at` between -9007199254740991 and 9007199254740991)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE `escapement_lane_jobs` (
  `job` bigint(20) NOT NULL,
  `ns` int(11) NOT NULL,
  `place` enum('waiting','active') NOT NULL,
  `lane` varbinary(1960) NOT NULL,
  `urgency` int(11) NOT NULL,
  `run_at` bigint(20) NOT NULL,
  `queue` varbinary(400) NOT NULL,
  `name` varbinary(400) NOT NULL,
  PRIMARY KEY (`job`),
  KEY `escapement_lane_jobs_lane` (`ns`,`place`,`lane`,`urgency`,`run_at`),
  KEY `escapement_lane_jobs_gate` (`ns`,`lane`,`queue`,`name`,`run_at`),
  CONSTRAINT `CONSTRAINT_1` CHECK (`urgency` between -2147483647 and 2147483647 and `run_at` between -9007199254740991 and 9007199254740991)
) ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci ROW_FORMAT=DYNAMIC;

CREATE TABLE `escapement_lines` (
  `line` int(11) NOT NULL AUTO_INCREMENT,
  `ns` int(11) NOT NULL,
  `kind` enum('plain','fragile','lane','relay','blocked','active','named','succeeded','dead','lost','cancelled','alias') NOT NULL,
  `queue` varbinary(400) NOT NULL DEFAULT '',
  `name` varbinary(400) NOT NULL DEFAULT '',
  `slot` int(11) NOT NULL DEFAULT 0,
  PRIMARY KEY (`line`),
  UNIQUE KEY `escapement_lines_place` (`ns`,`kind`,`queue`,`name`,`slot`)
) ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci ROW_FORMAT=DYNAMIC;

CREATE TABLE `escapement_migrations` (
  `version` int(11) NOT NULL,
  `name` varchar(255) NOT NULL,
  `breaking` tinyint(4) NOT NULL,
  `applied_at` bigint(20) NOT NULL,
  PRIMARY KEY (`version`)
) ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci;

CREATE TABLE `escapement_namespaces` (
  `ns` int(11) NOT NULL AUTO_INCREMENT,
  `name` varbinary(512) NOT NULL,
  `config_version` bigint(20) NOT NULL DEFAULT 0,
  `partition_count` int(11) NOT NULL DEFAULT 0,
  PRIMARY KEY (`ns`),
  UNIQUE KEY `escapement_namespaces_name` (`name`)
) ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci ROW_FORMAT=DYNAMIC;

CREATE TABLE `escapement_nodes` (
  `ns` int(11) NOT NULL,
  `id` varbinary(1024) NOT NULL,
  `started_at` bigint(20) NOT NULL,
  `seen_at` bigint(20) NOT NULL,
  `record` longtext NOT NULL,
  PRIMARY KEY (`ns`,`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE `escapement_occurrences` (
  `ns` int(11) NOT NULL,
  `schedule_key` varbinary(400) NOT NULL,
  `fire_at` bigint(20) NOT NULL,
  `until` bigint(20) DEFAULT NULL,
  `covered` bigint(20) NOT NULL,
  `fate` enum('planned','skipped') NOT NULL,
  `reason` longtext DEFAULT NULL,
  `job_id` varbinary(1024) DEFAULT NULL,
  `planned_at` bigint(20) NOT NULL,
  `node` varbinary(1024) NOT NULL,
  PRIMARY KEY (`ns`,`schedule_key`,`fire_at`),
  KEY `escapement_occurrences_planned` (`ns`,`planned_at`),
  CONSTRAINT `CONSTRAINT_1` CHECK (`fire_at` between -9007199254740991 and 9007199254740991 and `until` between -9007199254740991 and 9007199254740991 and `planned_at` between -9007199254740991 and 9007199254740991)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE `escapement_parents` (
  `parent` bigint(20) NOT NULL,
  `child` bigint(20) NOT NULL,
  `position` int(11) NOT NULL,
  PRIMARY KEY (`parent`,`child`),
  KEY `escapement_parents_child` (`child`,`position`)
) ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci;

CREATE TABLE `escapement_partitions` (
  `ns` int(11) NOT NULL,
  `partition_number` int(11) NOT NULL,
  `first_slot` int(11) NOT NULL,
  `end_slot` int(11) NOT NULL,
  `epoch` bigint(20) NOT NULL,
  `owner` varbinary(1024) DEFAULT NULL,
  `lease_until` bigint(20) NOT NULL DEFAULT 0,
  `mark` bigint(20) DEFAULT NULL,
  PRIMARY KEY (`ns`,`partition_number`),
  CONSTRAINT `CONSTRAINT_1` CHECK (`epoch` between 0 and 1000000000 and `lease_until` between -9007199254740991 and 9007199254740991 and `mark` between -9007199254740991 and 9007199254740991)
) ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci ROW_FORMAT=DYNAMIC;

CREATE TABLE `escapement_queues` (
  `ns` int(11) NOT NULL,
  `queue` varbinary(400) NOT NULL,
  `paused` tinyint(4) NOT NULL DEFAULT 0,
  `concurrency` bigint(20) DEFAULT NULL,
  `rate_limit` bigint(20) DEFAULT NULL,
  `rate_per_ms` bigint(20) DEFAULT NULL,
  PRIMARY KEY (`ns`,`queue`),
  CONSTRAINT `CONSTRAINT_1` CHECK (`concurrency` between 1 and 9007199254740991 and `rate_limit` between 1 and 9007199254740991 and `rate_per_ms` between 1 and 9007199254740991)
) ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci ROW_FORMAT=DYNAMIC;

CREATE TABLE `escapement_schedules` (
  `ns` int(11) NOT NULL,
  `schedule_key` varbinary(400) NOT NULL,
  `spec` longtext NOT NULL,
  `job` longtext NOT NULL,
  `paused` tinyint(4) NOT NULL,
  `next_at` bigint(20) DEFAULT NULL,
  `version` bigint(20) NOT NULL,
  `fired` bigint(20) NOT NULL DEFAULT 0,
  `last_job_id` varbinary(1024) DEFAULT NULL,
  `created_at` bigint(20) NOT NULL,
  `updated_at` bigint(20) NOT NULL,
  PRIMARY KEY (`ns`,`schedule_key`),
  KEY `escapement_schedules_next` (`ns`,`paused`,`next_at`),
  CONSTRAINT `CONSTRAINT_1` CHECK (`version` between 0 and 1000000000 and `fired` between 0 and 9007199254740991 and `next_at` between -9007199254740991 and 9007199254740991)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE `escapement_schedule_versions` (
  `ns` int(11) NOT NULL,
  `schedule_key` varbinary(400) NOT NULL,
  `version` bigint(20) NOT NULL,
  PRIMARY KEY (`ns`,`schedule_key`)
) ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci ROW_FORMAT=DYNAMIC;

CREATE TABLE `escapement_trail` (
  `entry` bigint(20) NOT NULL AUTO_INCREMENT,
  `job` bigint(20) NOT NULL,
  `at` bigint(20) NOT NULL,
  `kind` enum('failed','crashed','snoozed','rolled-back','cancel-requested','updated','redriven','result-not-kept','log') NOT NULL,
  `attempt` int(11) NOT NULL,
  `token` int(11) NOT NULL,
  `claimer` int(11) NOT NULL,
  `text` longtext DEFAULT NULL,
  `error` longtext DEFAULT NULL,
  PRIMARY KEY (`entry`),
  KEY `escapement_trail_job` (`job`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE `escapement_unique_keys` (
  `ns` int(11) NOT NULL,
  `unique_key` varbinary(1940) NOT NULL,
  `job` bigint(20) NOT NULL,
  `until` bigint(20) DEFAULT NULL,
  PRIMARY KEY (`ns`,`unique_key`),
  KEY `escapement_unique_keys_job` (`job`)
) ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci ROW_FORMAT=DYNAMIC;

CREATE TABLE `escapement_windows` (
  `ns` int(11) NOT NULL,
  `kind` enum('queue','key') NOT NULL,
  `window_key` varbinary(1940) NOT NULL,
  `started_at` bigint(20) NOT NULL,
  `used` bigint(20) NOT NULL,
  `per_ms` bigint(20) NOT NULL,
  PRIMARY KEY (`ns`,`kind`,`window_key`),
  CONSTRAINT `CONSTRAINT_1` CHECK (`used` between 0 and 9007199254740991 and `per_ms` between 0 and 9007199254740991 and `started_at` between -9007199254740991 and 9007199254740991)
) ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci ROW_FORMAT=DYNAMIC;
