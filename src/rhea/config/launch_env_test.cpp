// Which launcher is recognised, and what it must have set.
#include "rhea/config/launch_env.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "rhea/base/error.h"

namespace rhea::config {
namespace {

LaunchEnv detect(const std::map<std::string, std::string>& variables) {
  return detect_launch([&](const std::string& name) -> std::optional<std::string> {
    const auto it = variables.find(name);
    return it == variables.end() ? std::nullopt : std::optional<std::string>(it->second);
  });
}

std::string refusal(const std::map<std::string, std::string>& variables) {
  try {
    detect(variables);
    return "accepted";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(LaunchEnv, OneProcessWithoutALauncher) {
  const LaunchEnv e = detect({});
  EXPECT_EQ(e.launcher, "none");
  EXPECT_EQ(e.rank, 0);
  EXPECT_EQ(e.world_size, 1);
  EXPECT_TRUE(e.logs());
}

TEST(LaunchEnv, TorchrunWinsInsideSrun) {
  const LaunchEnv e = detect({{"RANK", "3"},
                              {"WORLD_SIZE", "8"},
                              {"LOCAL_RANK", "1"},
                              {"LOCAL_WORLD_SIZE", "2"},
                              {"MASTER_ADDR", "n1"},
                              {"MASTER_PORT", "29500"},
                              {"SLURM_PROCID", "1"},
                              {"SLURM_STEP_ID", "0"},
                              {"SLURM_NTASKS", "4"},
                              {"LOG_RANK", "1, 3"},
                              {"NGPU", "16"}});
  EXPECT_EQ(e.launcher, "torchrun");
  EXPECT_EQ(e.rank, 3);
  EXPECT_EQ(e.world_size, 8);
  EXPECT_EQ(e.local_rank, 1);
  EXPECT_EQ(e.local_world_size, 2);
  EXPECT_EQ(e.master_addr, "n1");
  EXPECT_EQ(e.master_port, 29500);
  EXPECT_THAT(e.log_ranks, testing::ElementsAre(1, 3));
  EXPECT_TRUE(e.logs());
  EXPECT_EQ(e.dry_run_world_size, 16);
}

TEST(LaunchEnv, OpenMpiThenPmixThenSlurm) {
  const std::map<std::string, std::string> slurm = {
      {"SLURM_PROCID", "2"}, {"SLURM_STEP_ID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_LOCALID", "0"}};
  EXPECT_EQ(detect(slurm).launcher, "slurm");
  EXPECT_EQ(detect(slurm).rank, 2);
  EXPECT_FALSE(detect(slurm).logs());
  auto pmix = slurm;
  pmix["PMIX_RANK"] = "1";
  EXPECT_EQ(detect(pmix).launcher, "pmix");
  EXPECT_EQ(detect(pmix).rank, 1);
  auto mpi = pmix;
  mpi.insert({{"OMPI_COMM_WORLD_RANK", "5"},
              {"OMPI_COMM_WORLD_SIZE", "6"},
              {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}});
  EXPECT_EQ(detect(mpi).launcher, "openmpi");
  EXPECT_EQ(detect(mpi).world_size, 6);
}

TEST(LaunchEnv, BatchScriptIsNoRank) {
  EXPECT_EQ(
      detect({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}, {"SLURM_LOCALID", "0"}}).world_size, 1);
}

TEST(LaunchEnv, Refusals) {
  using testing::HasSubstr;
  EXPECT_THAT(refusal({{"RANK", "0"}, {"WORLD_SIZE", "2"}}),
              HasSubstr("LOCAL_RANK must be set when WORLD_SIZE (2)"));
  EXPECT_THAT(refusal({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "-1"}}),
              HasSubstr("LOCAL_RANK='-1'"));
  EXPECT_THAT(refusal({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "a"}}),
              HasSubstr("LOCAL_RANK='a'"));
  EXPECT_THAT(refusal({{"RANK", "2"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "0"}}),
              HasSubstr("RANK=2 must be below WORLD_SIZE=2"));
  EXPECT_THAT(refusal({{"RANK", "x"}, {"WORLD_SIZE", "2"}}), HasSubstr("RANK='x'"));
  EXPECT_THAT(refusal({{"WORLD_SIZE", "2"}}), HasSubstr("without RANK"));
  EXPECT_THAT(refusal({{"PMIX_RANK", "0"}}), HasSubstr("not the number of ranks"));
  EXPECT_THAT(refusal({{"MASTER_PORT", "70000"}}), HasSubstr("65535"));
  EXPECT_THAT(refusal({{"LOG_RANK", "0,x"}}), HasSubstr("LOG_RANK='x'"));
  EXPECT_THAT(refusal({{"NGPU", "0"}}), HasSubstr("NGPU='0'"));
  // One process: LOCAL_RANK decides nothing.
  EXPECT_EQ(refusal({{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"LOCAL_RANK", "a"}}), "accepted");
}

TEST(LaunchEnv, DeviceIndex) {
  LaunchEnv e;
  e.local_rank = 3;
  EXPECT_EQ(device_index(e, 1), 0);
  EXPECT_EQ(device_index(e, 4), 3);
  EXPECT_THROW(device_index(e, 2), Error);
}

}  // namespace
}  // namespace rhea::config
