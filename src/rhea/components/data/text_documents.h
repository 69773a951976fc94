// Documents of text files: by number where the files are plain, as a stream where one is
// compressed.
#pragma once
#include <filesystem>
#include <memory>
#include <vector>

#include "rhea/components/data/document_source.h"
#include "rhea/components/data/record.h"

namespace rhea::data {

// `index_folder`: see RecordIndex.
std::unique_ptr<DocumentSource> open_text_documents(const std::vector<std::filesystem::path>& files,
                                                    const RecordFormat& format,
                                                    const std::filesystem::path& index_folder);

}  // namespace rhea::data
