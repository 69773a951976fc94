#include "rhea/base/downloaded.h"

#include "rhea/base/error.h"

namespace rhea {

void check_downloaded(std::string_view content, std::string_view where) {
  if (content.empty()) throw Error("{} is empty; was its download or copy interrupted?", where);
  if (content.starts_with("version https://git-lfs"))
    throw Error("{} is a Git LFS pointer, not the file itself; fetch it with `git lfs pull`",
                where);
}

}  // namespace rhea
