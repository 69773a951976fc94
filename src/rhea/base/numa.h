// Memory of machines with several NUMA nodes.
#pragma once
#include <cstddef>
#include <filesystem>
#include <string_view>
#include <vector>

namespace rhea {

// Nodes that have memory and may give it to this process, ascending; empty where the kernel does
// not say. `root` stands before /proc and /sys.
std::vector<int> memory_nodes(const std::filesystem::path& root = "/");

// "0-2,5" -> {0, 1, 2, 5}. Text in another form ends the list.
std::vector<int> parse_node_list(std::string_view text);

// Lets pages of [data, data + bytes) that nobody touched yet come from `nodes` in turn, so that
// every core reads a share from each node and no memory controller serves all. A policy that the
// process was started with (numactl) is left alone. `data` must begin a page. Returns whether it
// was done.
bool interleave_pages(void* data, size_t bytes, const std::vector<int>& nodes);

}  // namespace rhea
