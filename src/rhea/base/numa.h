// Memory and cpus of machines with several NUMA nodes.
#pragma once
#include <cstddef>
#include <filesystem>
#include <string_view>
#include <vector>

namespace rhea {

// Nodes that have memory and may give it to this process, ascending; empty where the kernel does
// not say. `root` stands before /proc and /sys.
std::vector<int> memory_nodes(const std::filesystem::path& root = "/");

// "0-2,5" -> {0, 1, 2, 5}, nodes or cpus. Text in another form ends the list.
std::vector<int> parse_node_list(std::string_view text);

// Lets pages of [data, data + bytes) that nobody touched yet come from `nodes` in turn, so that
// every core reads a share from each node and no memory controller serves all. A policy that the
// process was started with (numactl) is left alone. `data` must begin a page. Returns whether it
// was done.
bool interleave_pages(void* data, size_t bytes, const std::vector<int>& nodes);

// A node, and those of its cpus that this process may use.
struct CpuNode {
  int number = 0;
  std::vector<int> cpus;
  bool operator==(const CpuNode&) const = default;
};
// The cpus that the calling thread may run on, ascending: its affinity mask, which taskset and
// control groups narrow.
std::vector<int> allowed_cpus();
// The nodes that have some of `allowed`, ascending; empty where the kernel does not say.
std::vector<CpuNode> cpu_nodes(const std::vector<int>& allowed,
                               const std::filesystem::path& root = "/");

// For each of `num_threads` workers, which of `nodes` it belongs to: as many to a node as it has
// cpus, in proportion, and neighbours together. Empty where there are fewer than two nodes: then
// nothing is to be kept apart.
std::vector<size_t> nodes_of_workers(int num_threads, const std::vector<CpuNode>& nodes);

// Lets the calling thread run on these cpus only, and on each of them. Returns whether the system
// did so.
bool keep_thread_on(const std::vector<int>& cpus);

}  // namespace rhea
