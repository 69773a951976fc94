// The fourth file: registers the family, and has the runs.
//
//   rhea train --module token_shift.cpp --config token_shift_debugmodel
#include "flavors.h"
#include "rhea/plugin/plugin.h"
#include "state_dict.h"

RHEA_PLUGIN(p) {
  p.family({.name = "token_shift",
            .key_rules = token_shift::kKeyRules,
            .config_json = token_shift::config_json});
}

rhea::TrainerConfig token_shift_debugmodel() {
  rhea::TrainerConfig c;
  c.model_spec = token_shift::model_registry("debugmodel");
  c.optimizer = rhea::default_adamw(3e-3);
  c.lr_scheduler->warmup_steps = 5;
  c.training.local_batch_size = 4;
  c.training.seq_len = 128;
  c.training.steps = 100;
  c.dataloader->dataset = "random";
  return c;
}
RHEA_CONFIG(token_shift_debugmodel, "0.2M parameters, random tokens")
