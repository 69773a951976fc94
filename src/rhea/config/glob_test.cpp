// Which texts a glob describes.
#include "rhea/config/glob.h"

#include <gtest/gtest.h>

#include "rhea/base/error.h"

namespace rhea::config {
namespace {

TEST(Glob, MatchesWholeTexts) {
  struct Match {
    const char *pattern, *text;
    bool matches;
  };
  for (const Match& c : {
           Match{"layers.0.wq", "layers.0.wq", true},
           Match{"layers.0.wq", "layers.0.wq.weight", false},
           Match{"layers.*", "layers.0.attention.wq.weight", true},  // a star crosses dots
           Match{"*.wq.*", "layers.0.attention.wq.weight", true},
           Match{"*a*b", "aab_ab", true},
           Match{"*a*b", "aab_a", false},
           Match{"layers.?.norm", "layers.7.norm", true},
           Match{"layers.?.norm", "layers.17.norm", false},
           Match{"layers.1[0-9].rope", "layers.15.rope", true},
           Match{"layers.1[0-9].rope", "layers.1.rope", false},
           Match{"layers.[!0-3].rope", "layers.4.rope", true},
           Match{"layers.[!0-3].rope", "layers.2.rope", false},
           Match{"w[123]", "w4", false},
           Match{"[]x]", "]", true},
           Match{"W1", "w1", false},
           Match{"*", "", true},
           Match{"", "", true},
           Match{"", "x", false},
       })
    EXPECT_EQ(Glob(c.pattern).matches(c.text), c.matches) << c.pattern << " on " << c.text;
}

TEST(Glob, ABracketIsClosed) {
  EXPECT_THROW(Glob("layers.[0-9"), Error);
  EXPECT_THROW(Glob("[]"), Error);
}

}  // namespace
}  // namespace rhea::config
