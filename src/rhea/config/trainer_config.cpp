#include "rhea/config/trainer_config.h"

namespace rhea {

TrainerConfig::TrainerConfig() = default;
TrainerConfig::TrainerConfig(const TrainerConfig& other) = default;
TrainerConfig::TrainerConfig(TrainerConfig&& other) noexcept = default;
TrainerConfig& TrainerConfig::operator=(const TrainerConfig& other) = default;
TrainerConfig& TrainerConfig::operator=(TrainerConfig&& other) noexcept = default;
TrainerConfig::~TrainerConfig() = default;

}  // namespace rhea
