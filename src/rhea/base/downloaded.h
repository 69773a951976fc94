// Files that are there, but whose content is not.
#pragma once
#include <string_view>

namespace rhea {

// Throws Error for content that is empty or a Git LFS pointer, which is what interrupted downloads
// and clones without LFS leave behind. `where` names the file in the message.
void check_downloaded(std::string_view content, std::string_view where);

}  // namespace rhea
